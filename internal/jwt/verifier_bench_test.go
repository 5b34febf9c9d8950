package jwt

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"math/big"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// BenchmarkVerify compares a token that was not seen before with the verification of
// its signature, by go-jose and by the standard library alone.
func BenchmarkVerify(b *testing.B) {
	k := newKey(b, "k1")
	v := fixed(b, nil, k)
	token := k.token(b, claimsOf(map[string]any{"groups": []string{"a", "b"}, "email": "ann@example.com"}))
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.verify(b.Context(), token, time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("go-jose", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := signed.Verify(k.private.Public()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("signature", func(b *testing.B) {
		b.ReportAllocs()
		at := strings.LastIndexByte(token, '.')
		raw, err := base64URL.DecodeString(token[at+1:])
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			hash := sha256.Sum256([]byte(token[:at]))
			if !ecdsa.Verify(&k.private.PublicKey, hash[:], new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])) {
				b.Fatal("not verified")
			}
		}
	})
}
