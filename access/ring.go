package access

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"
)

// SealPurpose is the purpose of a value. Each purpose has its own keys, so that a value for one is
// invalid for another.
type SealPurpose string

// The purposes.
const (
	Session  SealPurpose = "session"  // the cookie of a browser
	SignIn   SealPurpose = "sign-in"  // the cookie of a browser whose user is at a provider
	Ticket   SealPurpose = "ticket"   // what is in a URL for a few seconds
	Identity SealPurpose = "identity" // opaque tags of principals
	Position SealPurpose = "position" // tags of positions in a stream
)

// version is the first byte of a sealed value. It says how the rest is to be read.
const version = 1

// overhead is how many bytes longer a sealed value is than the value.
const overhead = 1 + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

// ErrNotOurs says that a value was not sealed for this purpose with one of the keys.
var ErrNotOurs = errors.New("the value was not issued by this gateway, or with a key that it no longer has")

// KeyRing has the keys of a gateway. The first one encrypts, and all of them decrypt, so that keys
// can be replaced one after the other.
//
// Static after construction, except for derived, which may be used by several
// goroutines at once.
type KeyRing struct {
	keys    []SealKey
	derived sync.Map // Purpose → []derived
}

// derived has the keys for one purpose that are derived from one key.
type derived struct {
	aead cipher.AEAD
	mac  []byte
	name string // of the key, which says nothing about it
}

// NewKeyRing returns a ring with the keys. Without any, it makes a random key, which no other
// replica has, and which ends with the process.
func NewKeyRing(keys []SealKey) *KeyRing {
	if len(keys) == 0 {
		var own SealKey
		rand.Read(own[:]) // never fails
		keys = []SealKey{own}
	}
	return &KeyRing{keys: keys}
}

func (r *KeyRing) of(p SealPurpose) []derived {
	if known, ok := r.derived.Load(p); ok {
		return known.([]derived)
	}
	all := make([]derived, len(r.keys))
	for i, k := range r.keys {
		all[i] = derive(k, p)
	}
	known, _ := r.derived.LoadOrStore(p, all)
	return known.([]derived)
}

// derive makes independent keys for a purpose (RFC 5869). It cannot fail, since the
// lengths are fixed.
func derive(k SealKey, p SealPurpose) derived {
	secret := func(label string) []byte {
		out, err := hkdf.Key(sha256.New, k[:], nil, "watchtide "+label+" "+string(p), keySize)
		if err != nil {
			panic(err)
		}
		return out
	}
	aead, err := chacha20poly1305.NewX(secret("seal"))
	if err != nil {
		panic(err)
	}
	d := derived{aead: aead, mac: secret("tag")}
	d.name = d.tag(string(p))
	return d
}

// Seal returns the encrypted value as a text of letters, digits, '-' and '_'. Each call returns
// another text.
func (r *KeyRing) Seal(p SealPurpose, value []byte) string {
	out := make([]byte, 1+chacha20poly1305.NonceSizeX, overhead+len(value))
	out[0] = version
	nonce := out[1:]
	rand.Read(nonce) // never fails
	out = r.of(p)[0].aead.Seal(out, nonce, value, out[:1])
	return base64.RawURLEncoding.EncodeToString(out)
}

// SealedLen returns the length of a sealed value of n bytes.
func SealedLen(n int) int { return base64.RawURLEncoding.EncodedLen(overhead + n) }

// strict, together with a check for line breaks, which it would skip, accepts only one spelling
// of a value.
var strict = base64.RawURLEncoding.Strict()

// Open returns the value that Seal has sealed for the purpose, and the name of the key that it
// did so with. An error never quotes the text.
func (r *KeyRing) Open(p SealPurpose, text string, most int) (value []byte, key string, err error) {
	if len(text) > most {
		return nil, "", fmt.Errorf("the value has %d bytes, of %d at most", len(text), most)
	}
	raw, err := strict.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") || len(raw) < overhead || raw[0] != version {
		return nil, "", ErrNotOurs
	}
	nonce, sealed := raw[1:1+chacha20poly1305.NonceSizeX], raw[1+chacha20poly1305.NonceSizeX:]
	for _, d := range r.of(p) {
		if value, err := d.aead.Open(nil, nonce, sealed, raw[:1]); err == nil {
			return value, d.name, nil
		}
	}
	return nil, "", ErrNotOurs
}

// Opens reports whether a value that a key of this name has sealed for the purpose can be
// opened.
func (r *KeyRing) Opens(p SealPurpose, key string) bool {
	return slices.ContainsFunc(r.of(p), func(d derived) bool { return d.name == key })
}

// tagSize is the length of a tag in bytes of the MAC: enough that no tag can be guessed.
const tagSize = 16

// Tag returns a tag of a value. Without the key, nobody can make the tag, or learn the value
// from it.
func (r *KeyRing) Tag(p SealPurpose, value string) string { return r.of(p)[0].tag(value) }

// HasTag reports whether one of the keys makes this tag of a value.
func (r *KeyRing) HasTag(p SealPurpose, value, tag string) bool {
	found := false
	for _, d := range r.of(p) {
		found = hmac.Equal([]byte(d.tag(value)), []byte(tag)) || found
	}
	return found
}

func (d derived) tag(value string) string {
	mac := hmac.New(sha256.New, d.mac)
	mac.Write([]byte(value))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:tagSize])
}
