//go:build servers

package nats

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

func newBucketWriter(t *testing.T, c Config) *adapter.Writer {
	t.Helper()
	w, err := NewWriter(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestWriter(t *testing.T) {
	t.Parallel()
	c := newClient(t, server(t).Addr())
	bucket := bucketName(t)
	kv, err := c.js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: bucket, History: 5, MaxValueSize: 2000})
	if err != nil {
		t.Fatal(err)
	}
	w := newBucketWriter(t, Config{URL: "nats://" + server(t).Addr(), Bucket: bucket, Keys: "a.>"})
	first, created, err := w.Put(within(t), stream.PutRequest{Key: "a.x", Value: []byte("1.50")})
	if err != nil || !created {
		t.Fatalf("created %v, error %v", created, err)
	}
	if got, err := kv.Get(within(t), "a.x"); err != nil || string(got.Value()) != "1.50" || got.Revision() != first.Revision {
		t.Fatalf("%v at revision %d, error %v", got, first.Revision, err)
	}
	conflict := new(stream.ConflictError)
	if _, _, err := w.Put(within(t), stream.PutRequest{Key: "a.x", Value: []byte("2"), IfRevision: new(uint64)}); !errors.As(err, &conflict) || conflict.Got != first.Revision {
		t.Errorf("of a new key: error %v", err)
	}
	for _, want := range []bool{true, false} {
		if deleted, err := w.Delete(within(t), stream.DeleteRequest{Key: "a.x"}); deleted != want || err != nil {
			t.Errorf("deleted %v, error %v", deleted, err)
		}
	}
	if _, created, err := w.Put(within(t), stream.PutRequest{Key: "a.x", Value: []byte("3"), IfRevision: new(uint64)}); !created || err != nil {
		t.Errorf("after its delete: created %v, error %v", created, err)
	}
	// A key is never a pattern, and the watch serves all that it takes.
	if _, err := kv.Put(within(t), "b.x", []byte("1")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a.*", "a.>", ">", "*.x", "b.x", "a..x", "a.x ", "a.\r\nPUB x"} {
		invalid := new(stream.InvalidError)
		if _, _, err := w.Put(within(t), stream.PutRequest{Key: key, Value: []byte("2")}); !errors.As(err, &invalid) {
			t.Errorf("%q: error %v", key, err)
		}
		if deleted, err := w.Delete(within(t), stream.DeleteRequest{Key: key}); deleted {
			t.Errorf("%q was deleted, error %v", key, err)
		}
	}
	if got, err := kv.Get(within(t), "b.x"); err != nil || string(got.Value()) != "1" {
		t.Errorf("%v, error %v: a key that the watch does not serve", got, err)
	}
	large := new(stream.TooLargeError)
	if _, _, err := w.Put(within(t), stream.PutRequest{Key: "a.y", Value: []byte(`"` + strings.Repeat("x", 2000) + `"`)}); !errors.As(err, &large) {
		t.Errorf("of a large value: error %v", err)
	}
}

// TestWriterAndAnother: what a rule has decided on is what is replaced.
func TestWriterAndAnother(t *testing.T) {
	t.Parallel()
	c := newClient(t, server(t).Addr())
	bucket := bucketName(t)
	kv, err := c.js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	put := func(value string) {
		if _, err := kv.Put(within(t), "x", []byte(value)); err != nil {
			t.Error(err)
		}
	}
	put(`"mine"`)
	w := newBucketWriter(t, Config{URL: "nats://" + server(t).Addr(), Bucket: bucket})
	decisions := 0
	_, _, err = w.Put(within(t), stream.PutRequest{Key: "x", Value: []byte(`"new"`), Condition: func(old *stream.Resource, _ []byte) error {
		if decisions++; decisions == 1 {
			put(`"yours"`)
			return nil
		}
		return errors.New(string(old.Value))
	}})
	if err == nil || err.Error() != `"yours"` || decisions != 2 {
		t.Errorf("%d decisions, error %v", decisions, err)
	}
	_, err = w.Delete(within(t), stream.DeleteRequest{Key: "x", Condition: func(old *stream.Resource) error {
		if decisions++; decisions == 3 {
			if err := kv.Delete(within(t), "x"); err != nil {
				t.Error(err)
			}
			put(`"again"`)
			return nil
		}
		return errors.New(string(old.Value))
	}})
	if err == nil || err.Error() != `"again"` {
		t.Errorf("%d decisions, error %v", decisions, err)
	}
}

// TestWriterWithoutAnswer: a server that is frozen between the read and the write leaves the outcome
// open, and the write is not made twice when it goes on.
func TestWriterWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	c := newClient(t, s.Addr())
	kv, err := c.js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: "b", History: 10})
	if err != nil {
		t.Fatal(err)
	}
	w := newBucketWriter(t, Config{URL: "nats://" + s.Addr(), Bucket: "b", StallAfter: MinStallAfter})
	unknown, unable := new(stream.OutcomeUnknownError), new(stream.UnavailableError)
	_, _, err = w.Put(within(t), stream.PutRequest{Key: "x", Value: []byte("1"), Condition: func(*stream.Resource, []byte) error {
		s.Pause()
		return nil
	}})
	if !errors.As(err, &unknown) {
		t.Errorf("frozen in between: error %v", err)
	}
	if _, _, err := w.Put(within(t), stream.PutRequest{Key: "x", Value: []byte("1")}); !errors.As(err, &unable) {
		t.Errorf("frozen before: error %v", err)
	}
	s.Resume()
	ready := time.Now().Add(20 * time.Second)
	for _, _, err = w.Put(within(t), stream.PutRequest{Key: "y", Value: []byte("1")}); err != nil && time.Now().Before(ready); {
		_, _, err = w.Put(within(t), stream.PutRequest{Key: "y", Value: []byte("1")})
	}
	if err != nil {
		t.Errorf("afterwards: error %v", err)
	}
	if got, err := kv.History(within(t), "x"); err == nil && len(got) != 1 {
		t.Errorf("%d values: written twice", len(got))
	} else if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Error(err)
	}
}

// TestWriterOfAMirror: a mirror takes no writes, and the log says so.
func TestWriterOfAMirror(t *testing.T) {
	t.Parallel()
	c := newClient(t, server(t).Addr())
	bucket := bucketName(t)
	if _, err := c.js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: bucket}); err != nil {
		t.Fatal(err)
	}
	mirror := bucketName(t)
	if _, err := c.js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: mirror, Mirror: &jetstream.StreamSource{Name: bucket}}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	w, err := NewWriter(Config{URL: "nats://" + server(t).Addr(), Bucket: mirror}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	unable := new(stream.UnavailableError)
	if _, _, err := w.Put(within(t), stream.PutRequest{Key: "x", Value: []byte("1")}); !errors.As(err, &unable) || !strings.Contains(log.String(), "is a mirror") {
		t.Errorf("error %v, log %s", err, log.String())
	}
}
