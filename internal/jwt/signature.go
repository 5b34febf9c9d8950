package jwt

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	_ "crypto/sha256" // for the hashes of algorithms
	_ "crypto/sha512"
	"math/big"

	jose "github.com/go-jose/go-jose/v4"
)

// signature is the key set of go-oidc for one token. Owned by authenticate.
type signature struct {
	issuer     *issuer
	token      *unverified
	candidates []*key
	payload    []byte
	by         digest
}

// VerifySignature returns the payload of the token if one of the candidates has signed
// it.
func (s *signature) VerifySignature(_ context.Context, token string) ([]byte, error) {
	for _, k := range s.candidates {
		payload, err := s.verify(token, k)
		if err == nil {
			s.payload, s.by = payload, k.digest
			return payload, nil
		}
	}
	return nil, errSignature
}

func (s *signature) verify(token string, k *key) ([]byte, error) {
	if public, ok := k.Key.(*ecdsa.PublicKey); ok {
		return s.token.verifyECDSA(public)
	}
	signed, err := jose.ParseSignedCompact(token, s.issuer.algorithms)
	if err != nil {
		return nil, err
	}
	return signed.Verify(k.Key)
}

// hashes are the hashes of the algorithms with elliptic curves.
var hashes = map[string]crypto.Hash{
	string(jose.ES256): crypto.SHA256, string(jose.ES384): crypto.SHA384, string(jose.ES512): crypto.SHA512,
}

// verifyECDSA does what go-jose does (RFC 7518, section 3.4), without parsing the token a third
// time, which takes a sixth of the time of the verification.
func (u *unverified) verifyECDSA(public *ecdsa.PublicKey) ([]byte, error) {
	hash, known := hashes[u.header.Algorithm]
	size := (public.Curve.Params().BitSize + 7) / 8
	if !known || len(u.signature) != 2*size {
		return nil, errSignature
	}
	sum := hash.New()
	sum.Write([]byte(u.signed))
	r, s := new(big.Int).SetBytes(u.signature[:size]), new(big.Int).SetBytes(u.signature[size:])
	if !ecdsa.Verify(public, sum.Sum(nil), r, s) {
		return nil, errSignature
	}
	return u.payload, nil
}
