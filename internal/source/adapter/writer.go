package adapter

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/loglimit"
	"github.com/watchtide/watchtide/stream"
)

const (
	// mostWrites is how many writes of a Writer are made at a time. Others wait.
	mostWrites = 32
	// mostOfClient is how many of them are made for one client.
	mostOfClient = mostWrites / 4
	// mostAttempts is how often a write is tried while others change the same key.
	mostAttempts = 8
	// logPerMinute is how many failures are logged: clients cause as many as they want.
	logPerMinute = 6
)

// ErrChanged means that a key has another version than the one that was to be replaced.
var ErrChanged = errors.New("the key has changed")

// NotWritten marks an error of an upstream after which it is certain that nothing was written.
func NotWritten(err error) error { return &notWritten{err} }

type notWritten struct{ error }

func (e *notWritten) Unwrap() error { return e.error }

// decided is an error of a write that was not sent to the upstream.
type decided struct{ error }

// Stored is what an upstream has for a key at one moment, as a majority of it agrees on.
type Stored struct {
	// Exists is false if there is no value. The other fields but Version mean nothing then.
	Exists bool
	// Value are the bytes.
	Value []byte
	// Revision is that of the resource.
	Revision uint64
	// Version is what Put and Delete expect to find; also of a key that does not exist.
	Version uint64
	// Flags are those of a key of Consul.
	Flags uint64
}

// WriteConn is a connection to an upstream that takes writes. Its methods are safe for concurrent
// use, and bound the time that they take. An error of Put and Delete that is neither ErrChanged nor
// marked by NotWritten leaves open whether the write was made. A [stream.RejectedError] so marked is for clients,
// and so is a [stream.DeniedError].
type WriteConn interface {
	io.Closer
	// Check reports a key that the watch does not serve, or a value that the upstream does not take.
	// The error is for clients.
	Check(key string, value []byte) error
	// Read returns what is stored for a key, which Check has accepted. A [stream.InvalidError] is for
	// clients: the watch does not serve what is there.
	Read(ctx context.Context, key string) (Stored, error)
	// Put replaces a version by a value, and returns what is stored then. With validateOnly it changes
	// nothing.
	Put(ctx context.Context, key string, value []byte, over Stored, validateOnly bool) (Stored, error)
	// Delete deletes a version. With validateOnly it changes nothing.
	Delete(ctx context.Context, key string, over Stored, validateOnly bool) error
}

// ActingConn is a WriteConn whose upstream decides on a write by who makes it. The Writer then uses what As
// returns in its place, also to read.
type ActingConn interface {
	WriteConn
	// As returns a connection that acts for an author; nil: nobody is known. The error is for clients. What is
	// returned is not closed.
	As(key string, author *stream.Author) (WriteConn, error)
}

// Writer is a [stream.Writer] that makes each write by compare-and-set: what it reads before is what
// conditions decide on, and the write is made only while that is there.
//
// Safe for concurrent use.
type Writer struct {
	// Static after construction.
	values  stream.Values
	limit   int64
	logger  *slog.Logger
	connect func(ctx context.Context) (WriteConn, error)
	slots   *slots
	opening chan struct{} // has a value while a connection is made

	mu     sync.Mutex
	conn   *sharedConn // nil: there is none
	closed bool
}

var _ interface {
	stream.Writer
	stream.ValueLimiter
	stream.ConditionalWriter
} = (*Writer)(nil)

// sharedConn is a connection and the writes that use it.
type sharedConn struct {
	WriteConn
	users int  // guarded by Writer.mu
	over  bool // it is closed once it has no users; guarded by Writer.mu
}

// NewWriter returns a Writer for values of at most limit bytes, which connects at the first write and
// after failures. Failures are logged, since clients are not told of them. The Writer must be closed.
func NewWriter(values stream.Values, limit int64, logger *slog.Logger, connect func(ctx context.Context) (WriteConn, error)) *Writer {
	return &Writer{
		values: values, limit: limit, logger: loglimit.New(logger, logPerMinute), connect: connect,
		slots: newSlots(mostWrites, mostOfClient), opening: make(chan struct{}, 1),
	}
}

// TakesConditions implements [stream.ConditionalWriter].
func (*Writer) TakesConditions() {}

// MaxValueBytes implements [stream.ValueLimiter].
func (w *Writer) MaxValueBytes() int64 { return w.limit }

// Close closes the connection once no write uses it. Later writes fail.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	done := w.retire(w.conn)
	w.mu.Unlock()
	closeConn(done)
}

// Put implements [stream.Writer].
func (w *Writer) Put(ctx context.Context, r stream.PutRequest) (stored stream.Resource, created bool, err error) {
	value, ok := stream.CompactJSON(r.Value)
	switch {
	case r.Key == "":
		return stored, false, wantKey()
	case int64(len(r.Value)) > w.limit:
		return stored, false, &stream.TooLargeError{What: "value", Size: int64(len(r.Value)), Limit: w.limit}
	case !ok:
		return stored, false, &stream.InvalidError{What: "value", Got: string(r.Value[:min(len(r.Value), 128)]), Want: "JSON text in UTF-8"}
	}
	err = w.attempt(ctx, r.Client, r.Key, r.By, func(conn WriteConn, old Stored) error {
		created = !old.Exists
		raw, err := rawValue(w.values, value, old)
		if err != nil {
			return &decided{err}
		}
		if r.Condition != nil {
			served, _ := w.values.Value(raw)
			if err := r.Condition(w.resource(r.Key, old), served); err != nil {
				return &decided{err}
			}
		}
		if err := expect(r.Key, r.IfRevision, old); err != nil {
			return &decided{err}
		}
		if err := conn.Check(r.Key, raw); err != nil {
			return &decided{err}
		}
		now, err := conn.Put(context.WithoutCancel(ctx), r.Key, raw, old, r.ValidateOnly)
		if err == nil {
			stored = *w.resource(r.Key, now)
		}
		return unlessValidated(err, r.ValidateOnly)
	})
	if err != nil {
		return stream.Resource{}, false, err
	}
	return stored, created, nil
}

// Delete implements [stream.Writer].
func (w *Writer) Delete(ctx context.Context, r stream.DeleteRequest) (deleted bool, err error) {
	if r.Key == "" {
		return false, wantKey()
	}
	err = w.attempt(ctx, r.Client, r.Key, r.By, func(conn WriteConn, old Stored) error {
		deleted = old.Exists
		if r.Condition != nil {
			if err := r.Condition(w.resource(r.Key, old)); err != nil {
				return &decided{err}
			}
		}
		if err := expect(r.Key, r.IfRevision, old); err != nil {
			return &decided{err}
		}
		if !old.Exists {
			return nil
		}
		return unlessValidated(conn.Delete(context.WithoutCancel(ctx), r.Key, old, r.ValidateOnly), r.ValidateOnly)
	})
	return deleted && err == nil, err
}

// unlessValidated returns the error of a write, which was certainly not made if it was only validated.
func unlessValidated(err error, validateOnly bool) error {
	if err == nil || !validateOnly || errors.Is(err, ErrChanged) {
		return err
	}
	return NotWritten(err)
}

// attempt reads a key and calls write with what is stored, again while that changes in between.
func (w *Writer) attempt(ctx context.Context, client, key string, by *stream.Author, write func(conn WriteConn, old Stored) error) error {
	release, err := w.slots.acquire(ctx, client)
	if err != nil {
		return err
	}
	defer release()
	shared, err := w.acquire(ctx)
	if err != nil {
		return w.unavailable(ctx, err)
	}
	failed := false
	defer func() { w.release(shared, failed) }()
	conn := shared.WriteConn
	if acting, ok := conn.(ActingConn); ok {
		if conn, err = acting.As(key, by); err != nil {
			return err
		}
	}
	if err := conn.Check(key, nil); err != nil { // before anything is read
		return err
	}
	for range mostAttempts {
		old, err := conn.Read(ctx, key)
		if isForClients(err) {
			return err
		}
		if err != nil {
			failed = ctx.Err() == nil
			return w.unavailable(ctx, err)
		}
		var (
			local    *decided
			definite *notWritten
		)
		switch err = write(conn, old); {
		case errors.Is(err, ErrChanged):
			continue
		case errors.As(err, &local):
			return local.error
		case errors.As(err, &definite):
			if rejected := new(stream.RejectedError); errors.As(err, &rejected) {
				return rejected
			}
			if denied := new(stream.DeniedError); errors.As(err, &denied) {
				return denied
			}
			return w.unavailable(ctx, definite.error)
		case err != nil:
			failed = true
			w.logger.Error("the outcome of a write is unknown", "error", err)
			return &stream.OutcomeUnknownError{Key: key, Cause: err}
		}
		return nil
	}
	return &stream.UnavailableError{What: fmt.Sprintf("key %.100q changes all the time: the write was tried %d times", key, mostAttempts)}
}

// isForClients reports whether an error of a read is for clients.
func isForClients(err error) bool {
	return errors.As(err, new(*stream.InvalidError)) || errors.As(err, new(*stream.DeniedError))
}

// unavailable returns the error of a write that was not made because of the upstream.
func (w *Writer) unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.logger.Error("the upstream does not take a write", "error", err)
	return &stream.UnavailableError{What: "the upstream of the watch does not take the write", Cause: err}
}

// acquire returns the connection, which it makes if there is none.
func (w *Writer) acquire(ctx context.Context) (*sharedConn, error) {
	select {
	case w.opening <- struct{}{}:
		defer func() { <-w.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	conn, closed := w.conn, w.closed
	if conn != nil {
		conn.users++
	}
	w.mu.Unlock()
	switch {
	case closed:
		return nil, errors.New("the watch has ended")
	case conn != nil:
		return conn, nil
	}
	made, err := w.connect(ctx)
	if err != nil {
		return nil, err
	}
	conn = &sharedConn{WriteConn: made, users: 1}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn = conn; w.closed { // meanwhile: this write is the last one
		w.retire(conn)
	}
	return conn, nil
}

// release ends the use of a connection by a write. One that failed is used by no other.
func (w *Writer) release(conn *sharedConn, failed bool) {
	w.mu.Lock()
	conn.users--
	var done WriteConn
	if failed || conn.over {
		done = w.retire(conn)
	}
	w.mu.Unlock()
	closeConn(done)
}

// retire gives a connection to no further write, and returns it if it is to be closed now. mu is held.
func (w *Writer) retire(conn *sharedConn) WriteConn {
	if conn == nil {
		return nil
	}
	if w.conn == conn {
		w.conn = nil
	}
	conn.over = true
	if conn.users > 0 {
		return nil
	}
	return conn.WriteConn
}

func closeConn(conn WriteConn) {
	if conn != nil {
		_ = conn.Close() // what it was for is done
	}
}

// resource is what is served of what is stored; nil: nothing.
func (w *Writer) resource(key string, old Stored) *stream.Resource {
	if !old.Exists {
		return nil
	}
	r := stream.Resource{Key: key, Revision: old.Revision}
	r.Value, r.Encoding = w.values.Value(old.Value)
	return &r
}

func wantKey() error { return &stream.InvalidError{What: "key", Got: "", Want: "at least one byte"} }

// expect compares the revision that is stored, 0 for none, with the expected one.
func expect(key string, want *uint64, old Stored) error {
	got := uint64(0)
	if old.Exists {
		got = old.Revision
	}
	if want == nil || *want == got {
		return nil
	}
	return &stream.ConflictError{Key: key, Want: *want, Got: got}
}

// rawValue returns the bytes that are served as a value. A string replaces text by text, where both
// are possible.
func rawValue(values stream.Values, value []byte, old Stored) ([]byte, error) {
	var text string
	isText := value[0] == '"' && json.Unmarshal(value, &text) == nil
	raw := value
	switch values {
	case stream.TextValues:
		if !isText {
			return nil, invalidValue(value, "a JSON string, since the watch has values: text")
		}
		raw = []byte(text)
	case stream.Base64Values:
		decoded, err := base64.StdEncoding.Strict().DecodeString(text)
		if !isText || err != nil {
			return nil, invalidValue(value, "a JSON string in base64, since the watch has values: base64")
		}
		return decoded, nil
	case stream.AnyValues:
		if isText && old.Exists && !json.Valid(old.Value) && utf8.Valid(old.Value) && !json.Valid([]byte(text)) {
			raw = []byte(text)
		}
	}
	if served, encoding := values.Value(raw); encoding != "" || !sameJSON(served, value) {
		return nil, invalidValue(value, "a value that the watch serves as it is")
	}
	return raw, nil
}

// sameJSON reports whether two texts are equal, or strings with the same text.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y string
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}

func invalidValue(value []byte, want string) error {
	return &stream.InvalidError{What: "value", Got: string(value[:min(len(value), 128)]), Want: want}
}
