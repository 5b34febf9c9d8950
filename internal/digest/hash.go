package digest

import (
	"encoding/binary"
	"math/bits"
)

// Hash is the hash of one resource: XXH64 with the seed 0, which programs in other languages have
// in a library. What is hashed is the text of the value as it is delivered, a line feed, "base64" if
// that is the encoding of the value, a line feed, and the key. A value is on one line, so two
// resources that differ never have the same text.
type Hash uint64

// Of returns the hash of a resource.
func Of(key string, value []byte, encoding string) Hash {
	var room [256]byte
	x := newXXH64()
	rest := append(room[:0], x.blocks(value)...)
	rest = append(rest, '\n')
	rest = append(rest, encoding...)
	rest = append(rest, '\n')
	rest = append(rest, key...)
	return Hash(x.sum(x.blocks(rest), len(value)+len(encoding)+len(key)+2))
}

// OfKey returns the hash of a key, which decides in which bucket of a table it is: the upper half of
// its XXH64 with the seed 0.
func OfKey(key string) uint32 {
	var room [256]byte
	x := newXXH64()
	return uint32(x.sum(x.blocks(append(room[:0], key...)), len(key)) >> 32)
}

const (
	prime1 = 0x9E3779B185EBCA87
	prime2 = 0xC2B2AE3D27D4EB4F
	prime3 = 0x165667B19E3779F9
	prime4 = 0x85EBCA77C2B2AE63
	prime5 = 0x27D4EB2F165667C5
)

// xxh64 is the state of XXH64 with the seed 0. See the specification of xxHash by Yann Collet.
type xxh64 struct{ v1, v2, v3, v4 uint64 }

func newXXH64() xxh64 {
	x := xxh64{v1: prime1, v2: prime2, v4: prime1}
	x.v1 += prime2
	x.v4 = -x.v4
	return x
}

// blocks takes the whole blocks of 32 bytes of b, and returns the rest. Each lane is a round, which is
// written out: calls that are inlined leave instructions here that do nothing and take a sixth of the time.
func (x *xxh64) blocks(b []byte) []byte {
	v1, v2, v3, v4 := x.v1, x.v2, x.v3, x.v4
	for ; len(b) >= 32; b = b[32:] {
		v1 = bits.RotateLeft64(v1+binary.LittleEndian.Uint64(b)*prime2, 31) * prime1
		v2 = bits.RotateLeft64(v2+binary.LittleEndian.Uint64(b[8:16])*prime2, 31) * prime1
		v3 = bits.RotateLeft64(v3+binary.LittleEndian.Uint64(b[16:24])*prime2, 31) * prime1
		v4 = bits.RotateLeft64(v4+binary.LittleEndian.Uint64(b[24:32])*prime2, 31) * prime1
	}
	x.v1, x.v2, x.v3, x.v4 = v1, v2, v3, v4
	return b
}

// sum returns the hash of n bytes, whose last are the rest.
func (x *xxh64) sum(rest []byte, n int) uint64 {
	h := uint64(prime5)
	if n >= 32 {
		h = bits.RotateLeft64(x.v1, 1) + bits.RotateLeft64(x.v2, 7) + bits.RotateLeft64(x.v3, 12) + bits.RotateLeft64(x.v4, 18)
		h = merge(merge(merge(merge(h, x.v1), x.v2), x.v3), x.v4)
	}
	h += uint64(n)
	for ; len(rest) >= 8; rest = rest[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(rest)), 27)*prime1 + prime4
	}
	if len(rest) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(rest))*prime1, 23)*prime2 + prime3
		rest = rest[4:]
	}
	for _, c := range rest {
		h = bits.RotateLeft64(h^uint64(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

func round(v, word uint64) uint64 { return bits.RotateLeft64(v+word*prime2, 31) * prime1 }

func merge(h, v uint64) uint64 { return (h^round(0, v))*prime1 + prime4 }
