package listing

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/watchtide/watchtide/internal/storage"
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
	// DeletesBehind is that of the listing's position.
	DeletesBehind uint64 `json:"u,omitempty"`
}

// DeletesCompleteTo is how far deletes without a revision were known to the listing.
func (t Token) DeletesCompleteTo() uint64 { return t.AsOf - min(t.AsOf, t.DeletesBehind) }

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

// isOf reports whether a version is of the token's revision order and not behind the token,
// and the state at a revision is the same everywhere.
func (t Token) isOf(v *storage.Version) bool {
	return v.Epoch == t.Epoch && t.AsOf <= v.Revision && !strings.HasPrefix(v.Epoch, stream.UnnumberedEpoch)
}

// in returns the seq at which a version shows the state at the token's revision; false if it
// does not.
func (t Token) in(v *storage.Version) (seq uint64, ok bool) {
	switch {
	case v.Epoch != t.Epoch || t.AsOf > v.Revision:
		return 0, false
	case t.AsOf == v.Revision:
		return v.Seq, v.DeletesCompleteTo >= t.DeletesCompleteTo()
	case strings.HasPrefix(v.Epoch, stream.UnnumberedEpoch):
		return 0, false // which deletes without a revision the listing has seen is not known
	case t.AsOf < max(v.Origin, v.Conflated, v.Since):
		return 0, false
	}
	seq = v.SeqBefore(v.NewerThan(t.AsOf))
	// At the head, all that may be missing are deletes that are not remembered.
	return seq, seq >= v.Readable && (seq < v.Seq || v.Count() == t.Count)
}
