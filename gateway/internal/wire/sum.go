package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// Sum is the checksum of a text and its length, as they appear at the end of a gzip
// stream. The zero value is the sum of the empty text.
type Sum struct {
	crc    uint32
	length uint64 // in bytes; only its value modulo 2^32 is reliable
}

// SumOf returns the sum of a text.
func SumOf(p []byte) Sum { return Sum{crc: crc32.ChecksumIEEE(p), length: uint64(len(p))} }

// Length returns the length of the text in bytes.
func (s Sum) Length() int { return int(s.length) }

// Then returns the sum of a text followed by another one.
func (s Sum) Then(next Sum) Sum {
	if next.length == 0 {
		return s
	}
	return Sum{crc: shift(s.crc, next.length) ^ next.crc, length: s.length + next.length}
}

// Write returns the sum of a text followed by p.
func (s Sum) Write(p []byte) Sum {
	return Sum{crc: crc32.Update(s.crc, crc32.IEEETable, p), length: s.length + uint64(len(p))}
}

// Gap is the difference between the sums of two texts. It stays the same while the
// same bytes are appended to both: a stream that shares its bytes with others needs
// to keep nothing else.
type Gap struct{ crc, length uint32 }

// Less returns the gap between s and another sum.
func (s Sum) Less(other Sum) Gap {
	return Gap{crc: unshift(s.crc^other.crc, other.length), length: uint32(s.length - other.length)}
}

// Plus returns the sum whose gap to s is g.
func (s Sum) Plus(g Gap) Sum {
	return Sum{crc: s.crc ^ shift(g.crc, s.length), length: s.length + uint64(g.length)}
}

// gzipHead begins a gzip stream: deflate, no name, no time, no operating system.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// lastBlock is an empty final block of fixed codes.
const lastBlock = "\x03\x00"

// appendGzipEnd appends the end of the gzip stream of a text with the sum s.
func (s Sum) appendGzipEnd(dst []byte) []byte {
	dst = append(dst, lastBlock...)
	dst = binary.LittleEndian.AppendUint32(dst, s.crc)
	return binary.LittleEndian.AppendUint32(dst, uint32(s.length))
}

// A CRC-32 is the remainder of a polynomial over the field of two elements. The
// checksum of two concatenated texts therefore follows from those of the two: the
// first is multiplied by x for each bit of the second. This is the method of
// crc32_combine in zlib since 1.2.12. Polynomials have their lowest power in the
// highest bit, as is usual for this checksum (RFC 1952, section 8).

// ieee is the polynomial of CRC-32, without its highest power.
const ieee = 0xedb88320

// one is the polynomial 1.
const one = 1 << 31

// order is the least positive power of x that is 1: ieee is primitive.
const order = 1<<32 - 1

// squares holds x to the powers 1, 2, 4, …, 2^31.
var squares = func() (t [32]uint32) {
	t[0] = one >> 1
	for i := range t[1:] {
		t[i+1] = times(t[i], t[i])
	}
	return t
}()

// times multiplies two polynomials modulo ieee.
func times(a, b uint32) (product uint32) {
	for bit := uint32(one); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		low := b & 1
		b = b>>1 ^ ieee&-low
	}
	return product
}

// power returns x to a power, which must be less than 2^32.
func power(of uint64) uint32 {
	p := uint32(one)
	for i := 0; of != 0; i, of = i+1, of>>1 {
		if of&1 != 0 {
			p = times(squares[i], p)
		}
	}
	return p
}

// bits returns the number of bits in n bytes, as a power of x.
func bits(n uint64) uint64 { return n % order * 8 % order }

// shift returns the part that crc contributes to the checksum of a text that is n
// bytes longer.
func shift(crc uint32, n uint64) uint32 { return times(power(bits(n)), crc) }

// unshift undoes shift.
func unshift(crc uint32, n uint64) uint32 { return times(power(order-bits(n)), crc) }
