package client

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// digest is the digest of a state, as docs/protocol.md defines it: how many resources it has, and
// the 128-bit sum of their hashes.
type digest struct {
	count  int
	hi, lo uint64
}

func (d digest) add(h uint64) digest {
	lo, carry := bits.Add64(d.lo, h, 0)
	return digest{d.count + 1, d.hi + carry, lo}
}

func (d digest) sub(h uint64) digest {
	lo, borrow := bits.Sub64(d.lo, h, 0)
	return digest{d.count - 1, d.hi - borrow, lo}
}

func (d digest) String() string { return fmt.Sprintf("%d-%016x%016x", d.count, d.hi, d.lo) }

// hash returns the hash of a resource: XXH64 with the seed 0 of the text of the value, a line feed, its
// encoding, a line feed, and the key.
func (r Resource) hash() uint64 {
	var room [256]byte
	x, key := newXXH64(), r.rawKey()
	rest := append(room[:0], x.blocks(r.Value)...)
	rest = append(rest, '\n')
	rest = append(rest, r.Encoding...)
	rest = append(rest, '\n')
	rest = append(rest, key...)
	return x.sum(x.blocks(rest), len(r.Value)+len(r.Encoding)+len(key)+2)
}

// keyHash returns the hash of the key, which decides in which bucket it is.
func (r Resource) keyHash() uint32 {
	x, key := newXXH64(), r.rawKey()
	return uint32(x.sum(x.blocks(key), len(key)) >> 32)
}

// rawKey returns the bytes of the key; one that is not base64 after all stays as it is.
func (r Resource) rawKey() []byte {
	if r.KeyEncoding != "" {
		if raw, err := base64.StdEncoding.DecodeString(r.Key); err == nil {
			return raw
		}
	}
	return []byte(r.Key)
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

// blocks takes the whole blocks of 32 bytes of b, and returns the rest.
func (x *xxh64) blocks(b []byte) []byte {
	v1, v2, v3, v4 := x.v1, x.v2, x.v3, x.v4
	for len(b) >= 32 {
		v1 = round(v1, binary.LittleEndian.Uint64(b))
		v2 = round(v2, binary.LittleEndian.Uint64(b[8:16]))
		v3 = round(v3, binary.LittleEndian.Uint64(b[16:24]))
		v4 = round(v4, binary.LittleEndian.Uint64(b[24:32]))
		b = b[32:]
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
