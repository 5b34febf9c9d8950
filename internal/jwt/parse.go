package jwt

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/watchtide/watchtide/access"
	kjson "sigs.k8s.io/json"
)

// Limits of a token.
const (
	maxToken = 16 << 10
	maxKeyID = 512
)

// header has the relevant members of the header of a token. Members that name or contain a key
// (jku, jwk, x5u, x5c) are not read: keys come from the issuer alone.
type header struct {
	Algorithm   string          `json:"alg"`
	KeyID       string          `json:"kid"`
	Type        string          `json:"typ"`
	ContentType string          `json:"cty"`
	Critical    json.RawMessage `json:"crit"`
	Encoded     json.RawMessage `json:"b64"`
}

// unverified is a token whose form has been checked, and nothing else.
type unverified struct {
	header  header
	payload []byte
	claims  map[string]any

	signed    string // the text that is signed
	signature []byte
}

// LooksLike reports whether a text has the form of a JWT, three parts with dots between them,
// and not that of a static token.
func LooksLike(text string) bool { return strings.Count(text, ".") == 2 }

var errForm = access.NewRefusal(access.InvalidToken, "the token is not a signed JWT in compact form")

// base64URL accepts only one spelling of the same bytes.
var base64URL = base64.RawURLEncoding.Strict()

// parse checks the form of a token (RFC 7515, section 3.1). The other form, JSON, may
// have several signatures.
func parse(token string) (*unverified, error) {
	if len(token) > maxToken {
		return nil, access.NewRefusal(access.InvalidToken, "the token is larger than 16 KiB")
	}
	if strings.ContainsFunc(token, notInToken) {
		return nil, errForm
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[2] == "" {
		return nil, errForm
	}
	var raw [3][]byte
	for i, part := range parts {
		var err error
		if raw[i], err = base64URL.DecodeString(part); err != nil {
			return nil, errForm
		}
	}
	u := &unverified{payload: raw[1], signature: raw[2], signed: token[:len(token)-len(parts[2])-1]}
	if !decode(raw[0], &u.header) || !decode(raw[1], &u.claims) || u.claims == nil {
		return nil, errForm
	}
	return u, u.header.check()
}

func notInToken(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// decode reads JSON that has only one interpretation: names of members are compared exactly,
// none is repeated, and all text is UTF-8.
func decode(data []byte, into any) bool {
	twice, err := kjson.UnmarshalStrict(data, into, kjson.DisallowDuplicateFields)
	return err == nil && len(twice) == 0 && utf8.Valid(data)
}

// types are the types of tokens that identify a principal. Others, such as logout+jwt, are
// signed with the same keys, but for another purpose.
var types = map[string]bool{"": true, "jwt": true, "at+jwt": true}

func (h *header) check() error {
	switch {
	case h.Critical != nil || h.Encoded != nil:
		return access.NewRefusal(access.InvalidToken, "the token's header demands extensions, of which none is supported")
	case !types[strings.TrimPrefix(strings.ToLower(h.Type), "application/")]:
		return access.NewRefusal(access.InvalidToken, "the token is of another type: want JWT or at+jwt")
	case h.ContentType != "":
		return access.NewRefusal(access.InvalidToken, "the token contains another token: want claims")
	case len(h.KeyID) > maxKeyID:
		return access.NewRefusal(access.InvalidToken, "the name of the token's key is too long")
	}
	return nil
}
