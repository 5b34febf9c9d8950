//go:build servers

package etcd

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func newWriter(t *testing.T, c Config) *adapter.Writer {
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
	s := startServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := newWriter(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"})
	first, created, err := w.Put(ctx, stream.PutRequest{Key: "x", Value: []byte(`{"n": 1}`)})
	if err != nil || !created {
		t.Fatalf("created %v, error %v", created, err)
	}
	got, err := s.client.Get(ctx, "/a/x")
	if err != nil || string(got.Kvs[0].Value) != `{"n": 1}` || uint64(got.Kvs[0].ModRevision) != first.Revision {
		t.Fatalf("%v at revision %d, error %v", got, first.Revision, err)
	}
	conflict := new(stream.ConflictError)
	if _, _, err := w.Put(ctx, stream.PutRequest{Key: "x", Value: []byte("2"), IfRevision: new(uint64)}); !errors.As(err, &conflict) || conflict.Got != first.Revision {
		t.Errorf("of a new key: error %v", err)
	}
	lease, err := s.client.Grant(ctx, 3600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Put(ctx, "/a/leased", "1", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	if _, created, err = w.Put(ctx, stream.PutRequest{Key: "leased", Value: []byte("2")}); created || err != nil {
		t.Errorf("created %v, error %v", created, err)
	}
	if got, err = s.client.Get(ctx, "/a/leased"); err != nil || string(got.Kvs[0].Value) != "2" || got.Kvs[0].Lease != int64(lease.ID) {
		t.Errorf("%v, error %v: want the lease of before", got, err)
	}
	// Nothing outside of the prefix is reached.
	s.put("/b/x", "1")
	if _, _, err := w.Put(ctx, stream.PutRequest{Key: "../b/x", Value: []byte("2")}); err != nil {
		t.Error(err)
	}
	if got, err = s.client.Get(ctx, "/b/x"); err != nil || string(got.Kvs[0].Value) != "1" {
		t.Errorf("%v, error %v: a key beside the prefix", got, err)
	}
	for _, want := range []bool{true, false} {
		if deleted, err := w.Delete(ctx, stream.DeleteRequest{Key: "x"}); deleted != want || err != nil {
			t.Errorf("deleted %v, error %v", deleted, err)
		}
	}
	large := new(stream.TooLargeError)
	if _, _, err := w.Put(ctx, stream.PutRequest{Key: strings.Repeat("k", 1000), Value: []byte(`"` + strings.Repeat("x", maxRequestBytes-requestBytes-2) + `"`)}); !errors.As(err, &large) {
		t.Errorf("of a large value: error %v", err)
	}
}

// TestWriterAndAnother: what a rule has decided on is what is replaced.
func TestWriterAndAnother(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.put("/a/x", `"mine"`)
	w := newWriter(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"})
	decisions := 0
	_, _, err := w.Put(t.Context(), stream.PutRequest{Key: "x", Value: []byte(`"new"`), Condition: func(old *stream.Resource, _ []byte) error {
		if decisions++; decisions == 1 {
			s.put("/a/x", `"yours"`)
			return nil
		}
		return errors.New(string(old.Value))
	}})
	if err == nil || err.Error() != `"yours"` || decisions != 2 {
		t.Errorf("%d decisions, error %v", decisions, err)
	}
	_, err = w.Delete(t.Context(), stream.DeleteRequest{Key: "x", Condition: func(old *stream.Resource) error {
		if decisions++; decisions == 3 {
			s.delete("/a/x")
			s.put("/a/x", `"again"`) // the same key, of another life
			return nil
		}
		return errors.New(string(old.Value))
	}})
	if err == nil || err.Error() != `"again"` {
		t.Errorf("%d decisions, error %v", decisions, err)
	}
}

// TestWriterWithoutAnswer: a member that is frozen between the read and the write leaves the outcome open,
// and the write is not made twice when it goes on.
func TestWriterWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := newWriter(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/", RequestTimeout: 300 * time.Millisecond})
	unknown, unable := new(stream.OutcomeUnknownError), new(stream.UnavailableError)
	_, _, err := w.Put(t.Context(), stream.PutRequest{Key: "x", Value: []byte("1"), Condition: func(*stream.Resource, []byte) error {
		s.Pause()
		return nil
	}})
	if !errors.As(err, &unknown) {
		t.Errorf("frozen in between: error %v", err)
	}
	if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: "x", Value: []byte("1")}); !errors.As(err, &unable) {
		t.Errorf("frozen before: error %v", err)
	}
	s.Resume()
	if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: "y", Value: []byte("1")}); err != nil {
		t.Errorf("afterwards: error %v", err)
	}
	if got, err := s.client.Get(t.Context(), "/a/x"); err != nil || len(got.Kvs) > 0 && got.Kvs[0].Version != 1 {
		t.Errorf("%v, error %v: written twice", got, err)
	}
}

func TestWriterWithoutPermission(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.secure()
	var log strings.Builder
	w, err := NewWriter(Config{Endpoints: []string{s.Addr()}, Prefix: "/a/", Username: "gateway", PasswordFile: passwordFile(t, "pass-word")}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	unable := new(stream.UnavailableError)
	if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: "x", Value: []byte("1")}); !errors.As(err, &unable) || !strings.Contains(log.String(), "wants a role that may write it") {
		t.Errorf("error %v, log %s", err, log.String())
	}
}
