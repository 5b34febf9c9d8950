package storage

import (
	"hash/maphash"

	"github.com/watchtide/watchtide/stream"
)

// Key is a key as written in a frame.
type Key struct {
	Text  string // without the quotes
	Hash  uint32
	Flags uint8 // of entries with this key
}

// NewKey returns a key as the frames of every log have it.
func NewKey(key string) Key {
	text, flags := key, uint8(0)
	if !stream.PlainText(key) {
		text, flags = quoteKey(key)
	}
	return Key{Text: text, Hash: hashKey(text), Flags: flags}
}

// quoteKey handles keys that cannot be in a JSON string unescaped.
func quoteKey(key string) (text string, flags uint8) {
	wire, encoding := stream.WireKey(key)
	if encoding != "" {
		return wire, keyBase64
	}
	quoted := stream.AppendJSONString(nil, key)
	return string(quoted[1 : len(quoted)-1]), keyEscaped
}

// hashSeed is shared by the whole process: hashes never leave it.
var hashSeed = maphash.MakeSeed()

func hashKey(wire string) uint32 {
	h := maphash.String(hashSeed, wire)
	return uint32(h>>32) ^ uint32(h)
}
