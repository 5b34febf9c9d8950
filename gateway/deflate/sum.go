package deflate

import (
	"encoding/binary"
	"hash/crc32"
)

// Sum is the checksum of a text and its length, which the end of a gzip stream
// holds. The zero value is that of no text.
type Sum struct {
	crc    uint32
	length uint64 // in bytes; only what it is modulo 2^32 is sure
}

// SumOf returns the sum of a text.
func SumOf(p []byte) Sum { return Sum{crc: crc32.ChecksumIEEE(p), length: uint64(len(p))} }

// Then returns the sum of a text and another one behind it.
func (s Sum) Then(next Sum) Sum {
	if next.length == 0 {
		return s
	}
	return Sum{crc: shift(s.crc, next.length) ^ next.crc, length: s.length + next.length}
}

// Write returns the sum of a text and of p behind it.
func (s Sum) Write(p []byte) Sum {
	return Sum{crc: crc32.Update(s.crc, crc32.IEEETable, p), length: s.length + uint64(len(p))}
}

// Gap is what distinguishes the sum of one text from that of another. It stays
// the same while the same bytes are appended to both: a stream that shares its
// bytes with others needs to keep nothing else.
type Gap struct{ crc, length uint32 }

// Less returns the gap between s and another sum.
func (s Sum) Less(other Sum) Gap {
	return Gap{crc: unshift(s.crc^other.crc, other.length), length: uint32(s.length - other.length)}
}

// Plus returns the sum that has the gap to s.
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
