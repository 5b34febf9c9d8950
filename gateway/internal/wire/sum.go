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

// Head begins a gzip stream: deflate, no name, no time, no operating system.
const Head = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// lastBlock is an empty final block of fixed codes.
const lastBlock = "\x03\x00"

// AppendEnd appends the end of the gzip stream of a text with the sum s.
func (s Sum) AppendEnd(dst []byte) []byte {
	dst = append(dst, lastBlock...)
	dst = binary.LittleEndian.AppendUint32(dst, s.crc)
	return binary.LittleEndian.AppendUint32(dst, uint32(s.length))
}
