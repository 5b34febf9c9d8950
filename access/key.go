package access

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
)

// keySize is the number of random bytes in a key.
const keySize = 32

// SealKey is a secret that all replicas share. It is hidden when it is printed or logged.
type SealKey [keySize]byte

// WantSealKey says what the file of a key holds.
const WantSealKey = "32 random bytes in hexadecimal or base64, as `watchtide key new` prints"

var errKey = errors.New("want " + WantSealKey)

// ParseSealKey reads the content of a file with a key.
func ParseSealKey(data []byte) (SealKey, error) {
	text := string(bytes.TrimSpace(data))
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.URLEncoding.DecodeString,
		base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		raw, err := decode(text)
		if err != nil || len(raw) != keySize {
			continue
		}
		if bytes.Count(raw, raw[:1]) == keySize {
			return SealKey{}, fmt.Errorf("the key has %d equal bytes: want %s", keySize, WantSealKey)
		}
		return SealKey(raw), nil
	}
	return SealKey{}, errKey
}

// NewSealKey returns the content of a file with a new key.
func NewSealKey() string {
	var k SealKey
	rand.Read(k[:]) // never fails
	return hex.EncodeToString(k[:])
}

// Format writes a placeholder, for every verb.
func (k SealKey) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[hidden]") }

// LogValue returns a placeholder.
func (k SealKey) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// MarshalText returns a placeholder, so that JSON does not have the key either.
func (k SealKey) MarshalText() ([]byte, error) { return []byte("[hidden]"), nil }
