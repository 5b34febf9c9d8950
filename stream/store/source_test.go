package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc"
)

// served is a watch that follows the store's watch notes, until the test ends.
func served(t testing.TB, s *Store) *streamwatch.Watch {
	t.Helper()
	r := streamwatch.NewRegistry()
	t.Cleanup(r.Close)
	return servedBy(t, r, s)
}

func servedBy(t testing.TB, r *streamwatch.Registry, s *Store) *streamwatch.Watch {
	t.Helper()
	w, err := r.Add(streamwatch.Config{Name: "memos", SourceName: "local", Source: s.Source("notes"), Writer: s.Writer("notes")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	if err := w.Prime(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// subscriber follows a watch.
type subscriber struct {
	t     testing.TB
	sub   *log.Subscription
	batch log.Batch
}

func subscribe(t testing.TB, w *streamwatch.Watch) *subscriber {
	s := &subscriber{t: t, sub: w.Subscribe(log.SubscribeOptions{})}
	t.Cleanup(s.sub.Close)
	return s
}

// until returns the events up to the wanted one.
func (s *subscriber) until(wanted func(stream.Event) bool) (events []stream.Event) {
	s.t.Helper()
	timeout := time.NewTimer(10 * time.Second)
	defer timeout.Stop()
	for {
		for s.sub.Next(&s.batch) {
			events = slices.AppendSeq(events, s.batch.Events())
			if slices.ContainsFunc(events, wanted) {
				return events
			}
		}
		select {
		case <-s.sub.Changed():
		case <-timeout.C:
			s.t.Fatalf("the wanted event did not arrive; got %v", events)
		}
	}
}

func atRevision(n uint64) func(stream.Event) bool {
	return func(e stream.Event) bool { return e.Resource.Revision == n || e.Revision == n }
}

func TestWatchFollowsTheStore(t *testing.T) {
	s := filled(t)
	w := served(t, s)
	sub := subscribe(t, w)
	sub.until(func(e stream.Event) bool { return e.Type == stream.EndOfSnapshot })
	stored := write(t, w.Writer(), "a/3", `{"n":12345678901234567890}`)
	for _, e := range sub.until(atRevision(stored.Revision)) {
		if e.Type == stream.Upsert && (e.Resource.Key != "a/3" || string(e.Resource.Value) != `{"n":12345678901234567890}`) {
			t.Errorf("got %+v", e)
		}
	}
	if v := w.Snapshot(); v.Revision() != stored.Revision || v.Count() != 4 || v.Epoch() != epoch(s) || v.Status().State != stream.InSync {
		t.Errorf("watch is at %d with %d resources in epoch %q, %v", v.Revision(), v.Count(), v.Epoch(), v.Status())
	}
}

// At the revision that Put returned, a subscriber of the gateway sees the
// write: that is how a writer reads its own writes.
func TestReadYourWritesByRevision(t *testing.T) {
	s := New(Config{})
	w := served(t, s)
	sub := subscribe(t, w)
	for n := range 50 {
		stored := write(t, w.Writer(), "k", fmt.Sprint(n))
		sub.until(atRevision(stored.Revision))
		if got, ok := w.Snapshot().Get("k"); !ok || got.Revision < stored.Revision {
			t.Fatalf("the watch is at %d and has %+v after %+v was stored", w.Snapshot().Revision(), got, stored)
		}
	}
}

// The server's side of the call has ended when Watch returns, however long that
// takes.
func TestWatchEndsTheServerSide(t *testing.T) {
	source := New(Config{}).Source("notes").(*source)
	var ended atomic.Bool
	source.channel.WithServerStreamInterceptor(func(server any, call grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		return source.channel.serve(server, call, info, func(server any, call grpc.ServerStream) error {
			err := handle(server, call)
			for range 1000 {
				runtime.Gosched()
			}
			ended.Store(true)
			return err
		})
	})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	commits := 0
	second := func() { // the first is before the call
		if commits++; commits == 2 {
			cancel()
		}
	}
	if err := source.Watch(ctx, stream.Resume{}, commitFunc{do: second}); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returned %v", err)
	}
	if !ended.Load() {
		t.Error("Watch has returned, and the server's side continues")
	}
}

// commitFunc is a Sink that calls a function at each Commit.
type commitFunc struct {
	stream.PlainSink
	do func()
}

func (f commitFunc) Reset(string) error                { return nil }
func (f commitFunc) Upsert(stream.Resource) error      { return nil }
func (f commitFunc) Delete(string, uint64) error       { return nil }
func (f commitFunc) Commit(uint64) error               { f.do(); return nil }
func (f commitFunc) Status(stream.State, string) error { return nil }

// Only WatchList can be called in process.
func TestChannelHasNoUnaryCalls(t *testing.T) {
	_, err := pb.NewWatchServiceClient(newChannel(New(Config{}))).ListWatches(t.Context(), &pb.ListWatchesRequest{})
	if err == nil || !strings.Contains(err.Error(), "only WatchList is called in process") {
		t.Errorf("error %v", err)
	}
}

// From Put to the event at a subscriber, through the in-process call, ingest
// and the watch's own log.
func BenchmarkPutToSubscriber(b *testing.B) {
	s := New(Config{})
	w := served(b, s)
	sub := subscribe(b, w)
	value := []byte(`{"text":"` + strings.Repeat("x", 280) + `"}`)
	b.ReportAllocs()
	for b.Loop() {
		stored, _, err := w.Writer().Put(background, stream.PutRequest{Key: "k", Value: value})
		if err != nil {
			b.Fatal(err)
		}
		sub.until(atRevision(stored.Revision))
	}
}

// A whole snapshot from the store into a watch.
func BenchmarkPrime(b *testing.B) {
	const resources = 100_000
	s := New(Config{})
	writer := s.Writer("notes")
	value := `{"text":"` + strings.Repeat("x", 280) + `"}`
	for i := range resources {
		write(b, writer, fmt.Sprintf("key-%06d", i), value)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := streamwatch.NewRegistry()
		servedBy(b, r, s)
		r.Close()
	}
}
