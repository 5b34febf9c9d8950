package history

import (
	"encoding/base64"
	"encoding/json"

	"github.com/watchtide/watchtide/stream"
)

// Cursor is a place between two changes, in terms that are valid at every replica. It names no
// resource and counts no hidden ones, except whole blocks of them.
type Cursor struct {
	Epoch    string `json:"e"`
	Revision uint64 `json:"r"`           // what is newer was passed
	Passed   uint64 `json:"p,omitempty"` // entries of the revision that were passed: some blocks
	Shown    uint64 `json:"s,omitempty"` // changes that were shown of the block after them
}

// block is how many entries of one revision are read before a reader may pause among them.
const block = 256

// MaxCursorLength is the greatest length of a cursor, in bytes.
const MaxCursorLength = 256

// String returns the cursor as clients have it.
func (c Cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("stream: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor reads a cursor. The error is an InvalidError.
func ParseCursor(s string) (c Cursor, err error) {
	if len(s) > MaxCursorLength {
		return c, badCursor(s[:MaxCursorLength] + "…")
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Epoch == "" || c.Passed%block != 0 || c.Shown > block {
		return Cursor{}, badCursor(s)
	}
	return c, nil
}

func badCursor(s string) error {
	return &stream.InvalidError{What: "cursor", Got: s, Want: "the next of an answer before"}
}
