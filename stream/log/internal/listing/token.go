package listing

import (
	"encoding/base64"
	"encoding/json"

	"github.com/watchtide/watchtide/stream"
)

// Token is the place of a page: as of revision T, after key K at revision R. It
// names nothing specific to this replica, so any other may serve the next page.
type Token struct {
	Epoch string `json:"e"`
	AsOf  uint64 `json:"t"`
	After uint64 `json:"r"`
	Key   []byte `json:"k"`
	Count int    `json:"n"`
	// Unswept is that of the listing's position.
	Unswept uint64 `json:"u,omitempty"`
}

// Swept is how far deletes without a revision were known to the listing.
func (t Token) Swept() uint64 { return t.AsOf - min(t.AsOf, t.Unswept) }

// String returns the token as clients have it.
func (t Token) String() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic("stream: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseToken reads a token. The error is an InvalidError.
func ParseToken(s string) (t Token, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.AsOf == 0 || t.Epoch == "" {
		return t, &stream.InvalidError{What: "page token", Got: s, Want: "the next_page_token of the page before"}
	}
	return t, nil
}
