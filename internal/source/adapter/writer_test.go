package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/stream"
)

// keyspace is an upstream in memory that takes writes.
type keyspace struct {
	mu       sync.Mutex
	revision uint64
	stored   map[string]Stored
	busy     int // writes that are being made
	most     int

	connects, closed int
	fail             error                             // of the next connection
	onRead           func(key string)                  // is called after a read
	onWrite          func(key string, made bool) error // is called after a write; with an error, that is its answer
	hold             chan struct{}                     // a write waits for it
}

func (k *keyspace) connect(context.Context) (WriteConn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return nil, k.fail
	}
	k.connects++
	return &keyspaceConn{keyspace: k}, nil
}

func (k *keyspace) put(key, raw string) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.revision++
	k.stored[key] = Stored{Exists: true, Value: []byte(raw), Revision: k.revision, Version: k.revision}
	return k.revision
}

type keyspaceConn struct {
	*keyspace
	over bool // it was closed; guarded by keyspace.mu
}

func (c *keyspaceConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		panic("closed twice")
	}
	c.over = true
	c.closed++
	return nil
}

func (c *keyspaceConn) Check(key string, value []byte) error {
	if strings.Contains(key, "*") {
		return &stream.InvalidError{What: "key", Got: key, Want: "no *"}
	}
	return nil
}

func (c *keyspaceConn) Read(ctx context.Context, key string) (Stored, error) {
	c.mu.Lock()
	if c.over {
		panic("used after it was closed")
	}
	s := c.stored[key]
	c.mu.Unlock()
	if c.onRead != nil {
		c.onRead(key)
	}
	return s, ctx.Err()
}

func (c *keyspaceConn) Put(_ context.Context, key string, value []byte, over Stored, validateOnly bool) (now Stored, err error) {
	now = Stored{Exists: true, Value: value, Revision: over.Revision}
	if !validateOnly {
		now.Revision, err = c.write(key, now, over)
	}
	return now, err
}

func (c *keyspaceConn) Delete(_ context.Context, key string, over Stored, validateOnly bool) (err error) {
	if !validateOnly {
		_, err = c.write(key, Stored{}, over)
	}
	return err
}

func (c *keyspaceConn) write(key string, now, over Stored) (uint64, error) {
	c.mu.Lock()
	c.busy++
	c.most = max(c.most, c.busy)
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	c.mu.Lock()
	c.busy--
	made := c.stored[key].Version == over.Version
	if made {
		c.revision++
		now.Revision, now.Version = c.revision, c.revision
		c.stored[key] = now
	}
	revision := c.revision
	c.mu.Unlock()
	if c.onWrite != nil {
		if err := c.onWrite(key, made); err != nil {
			return 0, err
		}
	}
	if !made {
		return 0, ErrChanged
	}
	return revision, nil
}

func newKeyspace() *keyspace { return &keyspace{stored: map[string]Stored{}} }

func (k *keyspace) writer(t *testing.T, values stream.Values) *Writer {
	w := NewWriter(values, 100, slog.New(slog.DiscardHandler), k.connect)
	t.Cleanup(w.Close)
	return w
}

func putOf(key, value string) stream.PutRequest {
	return stream.PutRequest{Key: key, Value: []byte(value)}
}

// TestWriter makes writes and checks what they return.
func TestWriter(t *testing.T) {
	k := newKeyspace()
	w := k.writer(t, stream.AnyValues)
	stored, created, err := w.Put(t.Context(), putOf("a", "{\n\"n\": 1.50}"))
	if err != nil || !created || string(stored.Value) != `{"n":1.50}` || stored.Revision != 1 {
		t.Fatalf("%+v, created %v, error %v", stored, created, err)
	}
	one, two := uint64(1), uint64(2)
	conflict := new(stream.ConflictError)
	r := putOf("a", "2")
	r.IfRevision = &two
	if _, _, err := w.Put(t.Context(), r); !errors.As(err, &conflict) || conflict.Got != 1 {
		t.Errorf("with another revision: error %v", err)
	}
	r.IfRevision = &one
	if stored, created, err = w.Put(t.Context(), r); err != nil || created || stored.Revision != 2 {
		t.Errorf("with its revision: %+v, created %v, error %v", stored, created, err)
	}
	r.IfRevision = new(uint64)
	if _, _, err := w.Put(t.Context(), r); !errors.As(err, &conflict) || conflict.Want != 0 {
		t.Errorf("only if it is new: error %v", err)
	}
	r.IfRevision, r.ValidateOnly = nil, true
	if stored, _, err = w.Put(t.Context(), r); err != nil || stored.Revision != 2 || k.revision != 2 {
		t.Errorf("only to validate: %+v, error %v, %d writes", stored, err, k.revision)
	}
	if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "a", ValidateOnly: true}); !deleted || err != nil || k.revision != 2 {
		t.Errorf("only to validate a delete: %v, error %v", deleted, err)
	}
	for _, want := range []bool{true, false} {
		if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "a"}); deleted != want || err != nil {
			t.Errorf("deleted %v, error %v", deleted, err)
		}
	}
	if _, created, err := w.Put(t.Context(), putOf("a", "3")); !created || err != nil {
		t.Errorf("after its delete: created %v, error %v", created, err)
	}
	for _, bad := range []stream.PutRequest{putOf("", "1"), putOf("a", "{"), putOf("a*", "1"), putOf("a", `"`+strings.Repeat("x", 100)+`"`)} {
		invalid, large := new(stream.InvalidError), new(stream.TooLargeError)
		if _, _, err := w.Put(t.Context(), bad); !errors.As(err, &invalid) && !errors.As(err, &large) {
			t.Errorf("%q, %.20s: error %v", bad.Key, bad.Value, err)
		}
	}
	k.put("a*", "1")
	invalid := new(stream.InvalidError)
	if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "a*"}); deleted || !errors.As(err, &invalid) || !k.stored["a*"].Exists {
		t.Errorf("a key that is not served was deleted: %v, error %v", deleted, err)
	}
	if k.connects != 1 {
		t.Errorf("%d connections, want one", k.connects)
	}
}

// TestWriterDecidesOnWhatItReplaces lets another writer change the key between the decision and the
// write: the write is decided again, on the new value.
func TestWriterDecidesOnWhatItReplaces(t *testing.T) {
	k := newKeyspace()
	w := k.writer(t, stream.AnyValues)
	k.put("a", `"mine"`)
	others := 1
	k.onRead = func(string) {
		if others > 0 {
			others--
			k.put("a", `"yours"`)
		}
	}
	mine := func(old *stream.Resource) error {
		if old == nil || string(old.Value) != `"mine"` {
			return errors.New("not mine")
		}
		return nil
	}
	r := putOf("a", `"new"`)
	r.Condition = func(old *stream.Resource, _ []byte) error { return mine(old) }
	if _, _, err := w.Put(t.Context(), r); err == nil || err.Error() != "not mine" {
		t.Errorf("put: error %v", err)
	}
	k.put("a", `"mine"`)
	others = 1
	if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "a", Condition: mine}); deleted || err == nil {
		t.Errorf("delete: %v, error %v", deleted, err)
	}
	if got := string(k.stored["a"].Value); got != `"yours"` {
		t.Errorf("the key has %s", got)
	}
	others = 1000
	unable := new(stream.UnavailableError)
	if _, _, err := w.Put(t.Context(), putOf("a", "1")); !errors.As(err, &unable) || !strings.Contains(err.Error(), "8 times") {
		t.Errorf("of a key that changes all the time: error %v", err)
	}
}

// TestWriterDoesNotRepeat: a write whose answer is lost is made once, and its connection is not used again.
func TestWriterDoesNotRepeat(t *testing.T) {
	k := newKeyspace()
	w := k.writer(t, stream.AnyValues)
	calls := 0
	k.onWrite = func(string, bool) error { calls++; return errors.New("connection lost, secret host") }
	unknown := new(stream.OutcomeUnknownError)
	if _, _, err := w.Put(t.Context(), putOf("a", "1")); !errors.As(err, &unknown) || strings.Contains(err.Error(), "secret") {
		t.Errorf("put: error %v", err)
	}
	if _, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "a"}); !errors.As(err, &unknown) {
		t.Errorf("delete: error %v", err)
	}
	if calls != 2 || k.closed != 2 || k.connects != 2 {
		t.Errorf("%d writes, %d connections of which %d are closed", calls, k.connects, k.closed)
	}
	unable := new(stream.UnavailableError)
	k.onWrite = func(string, bool) error { return NotWritten(errors.New("permission denied, secret host")) }
	if _, _, err := w.Put(t.Context(), putOf("a", "1")); !errors.As(err, &unable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("refused: error %v", err)
	}
	if k.closed != 2 {
		t.Error("a connection with which a write was refused is closed")
	}
	w.Close()
	k.fail = errors.New("no route to secret host")
	if _, _, err := w.Put(t.Context(), putOf("a", "1")); !errors.As(err, &unable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("without a connection: error %v", err)
	}
}

// TestWriterOfManyClients: of many writes at once some wait, clients that leave do not cost others their
// connection, and nothing is left behind after Close.
func TestWriterOfManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyspace()
		k.hold = make(chan struct{})
		w := k.writer(t, stream.AnyValues)
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var made, left int
		var mu sync.Mutex
		for i := range 100 {
			wg.Go(func() {
				of := t.Context()
				if i%2 == 0 {
					of = ctx
				}
				put := putOf(fmt.Sprint("k", i), "1")
				put.Client = fmt.Sprint("client", i%5)
				_, _, err := w.Put(of, put)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made++
				} else if errors.Is(err, context.Canceled) {
					left++
				} else if unable := new(stream.UnavailableError); !errors.As(err, &unable) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if k.busy != mostWrites {
			t.Errorf("%d writes at a time, want %d", k.busy, mostWrites)
		}
		leave()
		synctest.Wait()
		w.Close()
		if k.closed != 0 {
			t.Error("a connection is closed that writes use")
		}
		close(k.hold)
		wg.Wait()
		// A write that has begun is made, whether its client stays or not. Others find the writer closed.
		if len(k.stored) != made || made != mostWrites {
			t.Errorf("%d keys, %d answers, %d clients left", len(k.stored), made, left)
		}
		if k.connects != 1 || k.closed != 1 {
			t.Errorf("%d connections, %d closed", k.connects, k.closed)
		}
	})
}

// TestWriterShares: clients whose writes hang leave room for others, and nothing remains of them.
func TestWriterShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyspace{stored: map[string]Stored{}, hold: make(chan struct{})}
		w := NewWriter(stream.AnyValues, 100, slog.New(slog.DiscardHandler), k.connect)
		defer w.Close()
		var wg sync.WaitGroup
		ctx, leave := context.WithCancel(t.Context())
		write := func(ctx context.Context, client string, writes int) {
			for i := range writes {
				wg.Go(func() {
					put := putOf(fmt.Sprint(client, i), "1")
					put.Client = client
					if _, _, err := w.Put(ctx, put); err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		busy := func(want int) {
			t.Helper()
			if k.busy != want {
				t.Errorf("%d writes at a time, want %d", k.busy, want)
			}
		}
		write(ctx, "greedy", 100)
		busy(mostOfClient)
		write(t.Context(), "other", 1)
		busy(mostOfClient + 1)
		for i := range 3 * mostWrites / mostOfClient {
			write(ctx, fmt.Sprint("greedy", i), mostWrites)
		}
		busy(mostWrites)
		leave()
		synctest.Wait()
		close(k.hold)
		wg.Wait()
		if _, ok := k.stored["other0"]; !ok {
			t.Error("the write of the other client is not made")
		}
		if len(w.slots.clients) != 0 || len(w.slots.all) != 0 {
			t.Errorf("%d clients and %d writes are left", len(w.slots.clients), len(w.slots.all))
		}
	})
}

// TestRawValue stores values so that they are served as they were written.
func TestRawValue(t *testing.T) {
	for _, test := range []struct {
		values           stream.Values
		value, old, want string // want "": an error
	}{
		{stream.AnyValues, `{"a":1}`, "", `{"a":1}`},
		{stream.AnyValues, `"text"`, "", `"text"`},
		{stream.AnyValues, `"text"`, "old text", "text"},
		{stream.AnyValues, `"text"`, `"old"`, `"text"`},
		{stream.AnyValues, `"1.30"`, "old text", `"1.30"`},
		{stream.AnyValues, `1.30`, "old text", `1.30`},
		{stream.AnyValues, `"a\u00e9"`, "old text", "aé"},
		{stream.AnyValues, `"text"`, "\xff", `"text"`},
		{stream.TextValues, `"1.30"`, "", "1.30"},
		{stream.TextValues, `1.30`, "", ""},
		{stream.JSONValues, `"1.30"`, "", `"1.30"`},
		{stream.Base64Values, `"AAE="`, "", "\x00\x01"},
		{stream.Base64Values, `"AAF="`, "", ""},
		{stream.Base64Values, `"text!"`, "", ""},
		{stream.Base64Values, `5`, "", ""},
	} {
		got, err := rawValue(test.values, []byte(test.value), Stored{Exists: test.old != "", Value: []byte(test.old)})
		if string(got) != test.want || (err != nil) != (test.want == "") {
			t.Errorf("values %q, %s over %q: stored %q, error %v, want %q", test.values, test.value, test.old, got, err, test.want)
		}
	}
}
