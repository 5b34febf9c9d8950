package adapter

import (
	"bytes"
	"errors"

	"github.com/watchtide/watchtide/stream"
)

// ErrTaken means that a key was not created, since the upstream has another value of it.
var ErrTaken = errors.New("the upstream has another value, which is not overwritten")

// Serves reports whether what an upstream has is served as a value without an encoding.
func Serves(values stream.Values, raw, value []byte) bool {
	served, encoding := values.Value(raw)
	return encoding == "" && bytes.Equal(served, value)
}
