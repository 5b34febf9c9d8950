package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

const (
	// maxKeyBytes leaves room in a line of the protocol, of which a server takes 4 KiB by default, for
	// the name of the bucket, the address of the answer and two lengths.
	maxKeyBytes = 4<<10 - 512
	// headerBytes is more than the headers of a message that creates a key.
	headerBytes = 256
)

// Target creates keys that a Source of the same configuration serves.
//
// Safe for concurrent use.
type Target struct {
	// Static after construction.
	source  *Source
	ctx     context.Context // of the connection; its cause is why that has ended
	end     context.CancelCauseFunc
	conn    *connection
	bucket  *bucket
	values  jetstream.KeyValue
	largest int64 // bytes of a value
}

// NewTarget connects to a server. The target must be closed.
func NewTarget(ctx context.Context, c Config) (_ *Target, err error) {
	t := &Target{}
	if t.source, err = New(c); err != nil {
		return nil, err
	}
	t.ctx, t.end = context.WithCancelCause(ctx)
	if t.conn, err = t.source.config.connect(t.ctx, t.end, func(int64) {}); err != nil {
		t.end(nil)
		return nil, err
	}
	if err := t.open(); err != nil {
		err = t.source.ended(t.ctx, t.conn, err)
		t.Close()
		return nil, err
	}
	return t, nil
}

// open finds the bucket.
func (t *Target) open() (err error) {
	if t.bucket, _, err = t.source.config.open(t.ctx, t.conn); err != nil {
		return err
	}
	ctx, cancel := t.bucket.limited(t.ctx)
	defer cancel()
	if t.values, err = t.bucket.jetstream.KeyValue(ctx, t.source.config.Bucket); err != nil {
		return unanswered(t.ctx, "the bucket", err)
	}
	t.largest = t.conn.conn.MaxPayload()
	if most := int64(t.bucket.stream.CachedInfo().Config.MaxMsgSize); most > 0 {
		t.largest = min(t.largest, most)
	}
	t.largest -= headerBytes
	return nil
}

// wantKey says what a key of a bucket may be.
const wantKey = `letters, digits and "-/_=", in tokens between dots`

// Check reports a resource that would not be served as it is.
func (t *Target) Check(key string, value []byte) error {
	if c := &t.source.config; !adapter.Serves(c.Values, value, value) {
		return fmt.Errorf("the watch would serve another value: want no values: %s", c.Values)
	}
	return t.fits(key, value)
}

// fits reports a resource that the bucket does not take, or the watch does not serve.
func (t *Target) fits(key string, value []byte) error {
	c := &t.source.config
	switch {
	case !validKey(key):
		return &stream.InvalidError{What: "key", Got: key, Want: wantKey}
	case len(key) > maxKeyBytes:
		return &stream.TooLargeError{What: "key", Size: int64(len(key)), Limit: maxKeyBytes}
	case c.Keys != "" && !matches(c.Keys, key):
		return &stream.InvalidError{What: "key", Got: key, Want: fmt.Sprintf("one that matches %q, as the watch serves no others", c.Keys)}
	case int64(len(value)) > t.largest:
		return &stream.TooLargeError{What: "value", Size: int64(len(value)), Limit: t.largest}
	}
	return nil
}

// validKey reports whether clients of buckets take a key.
func validKey(key string) bool {
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-/_=.", c) >= 0:
		default:
			return false
		}
	}
	return validSubject(key, false)
}

// matches reports whether a key matches a pattern.
func matches(pattern, key string) bool {
	tokens := strings.Split(key, ".")
	for i, want := range strings.Split(pattern, ".") {
		switch {
		case i >= len(tokens):
			return false
		case want == ">":
			return true
		case want != "*" && want != tokens[i]:
			return false
		}
	}
	return strings.Count(pattern, ".") == len(tokens)-1
}

// Create creates a key. false: it has this value already. Another value is [adapter.ErrTaken].
func (t *Target) Create(ctx context.Context, key string, value []byte) (created bool, err error) {
	limited, cancel := t.bucket.limited(ctx)
	defer cancel()
	if _, err = t.values.Create(limited, key, value); err == nil {
		return true, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return false, t.failed(ctx, unanswered(ctx, "a new key", err))
	}
	entry, err := t.values.Get(limited, key)
	if err != nil {
		return false, t.failed(ctx, unanswered(ctx, "a key", err))
	}
	if !adapter.Serves(t.source.config.Values, entry.Value(), value) {
		return false, adapter.ErrTaken
	}
	return false, nil
}

// failed returns why a request failed: the cause of the context or of the end of the connection, if
// there is one.
func (t *Target) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return t.source.ended(t.ctx, t.conn, err)
}

// Close ends the connection.
func (t *Target) Close() {
	t.end(nil)
	t.conn.close()
}
