package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jose "github.com/go-jose/go-jose/v4"
)

// Limits of a key set.
const (
	maxDocument = 512 << 10 // bytes of a document
	maxKeys     = 100
	maxSameID   = 4 // keys with the same name
	leastRSA    = 2048
	mostRSA     = 8192 // verifying with larger ones takes too long
)

// digest identifies a key by its content (RFC 7638).
type digest [32]byte

// print returns enough of a digest to tell keys of one set apart, as text.
func (d digest) print() string { return base64.RawURLEncoding.EncodeToString(d[:12]) }

// key is a public key for signatures.
type key struct {
	jose.JSONWebKey
	digest digest
}

// keys is the usable keys of a key set.
//
// Static after construction.
type keys struct {
	all     []key
	byID    map[string][]key
	digests map[digest]bool
	prints  map[string]bool // of the digests
}

// parseKeys reads a key set. Keys that a token cannot be signed with are left out.
func parseKeys(data []byte) (*keys, error) {
	if len(data) > maxDocument {
		return nil, fmt.Errorf("the key set has %d bytes, of %d at most", len(data), maxDocument)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New(`the key set is not JSON of the form {"keys": […]}`)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys, of %d at most", len(set.Keys), maxKeys)
	}
	out := &keys{byID: map[string][]key{}, digests: map[digest]bool{}, prints: map[string]bool{}}
	for _, raw := range set.Keys {
		if k, ok := parseKey(raw); ok && len(out.byID[k.KeyID]) < maxSameID {
			out.add(k)
		}
	}
	if len(out.all) == 0 {
		return nil, fmt.Errorf("none of the %d keys of the key set is a public key for signatures that is usable: want EC, OKP, or RSA of %d to %d bits", len(set.Keys), leastRSA, mostRSA)
	}
	return out, nil
}

func (s *keys) add(k key) {
	s.all = append(s.all, k)
	s.byID[k.KeyID] = append(s.byID[k.KeyID], k)
	s.digests[k.digest], s.prints[k.digest.print()] = true, true
}

func parseKey(raw []byte) (key, bool) {
	var k jose.JSONWebKey
	if err := json.Unmarshal(raw, &k); err != nil || !k.Valid() || k.Use != "" && k.Use != "sig" || !isUsable(k.Key) {
		return key{}, false
	}
	if k.Algorithm != "" && !slices.Contains(Algorithms, k.Algorithm) {
		return key{}, false
	}
	// Only the key itself may make a difference, not what go-jose has besides it.
	k.Certificates, k.CertificatesURL = nil, nil
	sum, err := k.Thumbprint(crypto.SHA256)
	return key{JSONWebKey: k, digest: digest(sum)}, err == nil
}

// isUsable reports whether a key is public, and neither too weak nor too large. A published
// private key is no longer secret, and its owner should notice. With a symmetric key everybody
// could sign.
func isUsable(k any) bool {
	switch k := k.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	case *rsa.PublicKey:
		return k.N.BitLen() >= leastRSA && k.N.BitLen() <= mostRSA
	}
	return false
}

// candidates returns the keys that may have signed a token with this key ID and algorithm. A
// token without an ID is accepted only if the set has one suitable key: trying them all would
// cost too much.
func (s *keys) candidates(id, algorithm string) []*key {
	among := s.byID[id]
	if id == "" {
		among = s.all
	}
	out := make([]*key, 0, maxSameID)
	for i := range among {
		if k := &among[i]; fits(k, algorithm) {
			out = append(out, k)
		}
	}
	if id == "" && len(out) != 1 {
		return nil
	}
	return out
}

// fits reports whether a key may be used with an algorithm. A key is for one kind of algorithm,
// so that a token cannot choose another.
func fits(k *key, algorithm string) bool {
	if k.Algorithm != "" && k.Algorithm != algorithm {
		return false
	}
	switch pub := k.Key.(type) {
	case *ecdsa.PublicKey:
		return curves[algorithm] == pub.Curve.Params().BitSize
	case ed25519.PublicKey:
		return algorithm == string(jose.EdDSA)
	default:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	}
}

// curves are the sizes of the curves of algorithms.
var curves = map[string]int{string(jose.ES256): 256, string(jose.ES384): 384, string(jose.ES512): 521}
