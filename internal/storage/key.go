package storage

import (
	"hash/maphash"

	"github.com/watchtide/watchtide/internal/frame"
)

// Key is a key as written in a frame, with what finds its entries.
type Key struct {
	frame.Key
	Hash  uint32
	Flags uint8 // of entries with this key
}

// NewKey returns a key as the frames of every log have it.
func NewKey(key string) Key {
	k := Key{Key: frame.NewKey(key)}
	k.Hash = hashKey(k.Text)
	switch {
	case k.Base64:
		k.Flags = keyBase64
	case k.Escaped:
		k.Flags = keyEscaped
	}
	return k
}

// hashSeed is shared by the whole process: hashes never leave it.
var hashSeed = maphash.MakeSeed()

func hashKey(wire string) uint32 {
	h := maphash.String(hashSeed, wire)
	return uint32(h>>32) ^ uint32(h)
}
