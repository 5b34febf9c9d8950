package stream_test

import (
	"context"
	"fmt"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// warehouse is a typical upstream: it lists what it has, as of a revision, and it
// reports changes one transaction at a time. docs/writing-a-source.md builds a
// source for it.
type warehouse struct {
	incarnation string // another one after a restore

	mu      sync.Mutex // guards the following fields
	stock   map[string]article
	history []transaction
	changed chan struct{} // closed when there is a new transaction, then replaced
}

type article struct {
	name     string
	revision uint64
	data     string // JSON, as people write it
}

type transaction struct {
	revision uint64
	put      []article
	deleted  []string
}

func newWarehouse() *warehouse {
	return &warehouse{incarnation: "spring", stock: map[string]article{}, changed: make(chan struct{})}
}

// List returns everything there is, as of a revision.
func (w *warehouse) List(context.Context) (all []article, revision uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.stock {
		all = append(all, a)
	}
	return all, uint64(len(w.history)), nil
}

// Remembers reports whether it knows what came after a revision: not if it has
// forgotten it, and not if it never was there.
func (w *warehouse) Remembers(revision uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return revision <= uint64(len(w.history))
}

// Head returns the newest revision.
func (w *warehouse) Head() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint64(len(w.history))
}

// Next waits for the transaction after a revision.
func (w *warehouse) Next(ctx context.Context, after uint64) (transaction, error) {
	for {
		w.mu.Lock()
		history, changed := w.history, w.changed
		w.mu.Unlock()
		if after < uint64(len(history)) {
			return history[after], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return transaction{}, ctx.Err()
		}
	}
}

// write makes all the writes one transaction.
func (w *warehouse) write(writes ...streamtest.Write) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := transaction{revision: uint64(len(w.history)) + 1}
	for _, x := range writes {
		if x.Delete {
			t.deleted = append(t.deleted, x.Key)
			delete(w.stock, x.Key)
			continue
		}
		a := article{name: x.Key, revision: t.revision, data: x.Value}
		t.put = append(t.put, a)
		w.stock[a.name] = a
	}
	w.history = append(w.history, t)
	close(w.changed)
	w.changed = make(chan struct{})
	return nil
}

// warehouseSource follows a warehouse. It is all that a source needs.
type warehouseSource struct{ warehouse *warehouse }

// Watch implements stream.Source.
func (s warehouseSource) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	at, err := s.begin(ctx, resume, sink)
	for err == nil {
		at, err = s.next(ctx, at, sink)
	}
	return err
}

// next passes on the transaction after a revision, and returns its own.
func (s warehouseSource) next(ctx context.Context, after uint64, sink stream.Sink) (uint64, error) {
	t, err := s.warehouse.Next(ctx, after)
	if err != nil {
		return after, err
	}
	return t.revision, send(t, sink)
}

// begin goes on from resume where the warehouse can, else with a snapshot, and
// returns the revision up to which everything was sent.
func (s warehouseSource) begin(ctx context.Context, resume stream.Resume, sink stream.Sink) (uint64, error) {
	if resume.Epoch == stream.CanonicalEpoch(s.warehouse.incarnation) && s.warehouse.Remembers(resume.Revision) {
		return s.catchUp(ctx, resume.Revision, sink)
	}
	if err := sink.Reset(s.warehouse.incarnation); err != nil {
		return 0, err
	}
	all, revision, err := s.warehouse.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, a := range all {
		if err := sink.Upsert(resourceOf(a)); err != nil {
			return 0, err
		}
	}
	return revision, sink.Commit(revision)
}

// catchUp sends what is newer than a revision, up to where the warehouse is now, and
// says so.
func (s warehouseSource) catchUp(ctx context.Context, at uint64, sink stream.Sink) (uint64, error) {
	err := sink.Commit(at)
	for head := s.warehouse.Head(); at < head && err == nil; {
		at, err = s.next(ctx, at, sink)
	}
	if err != nil {
		return at, err
	}
	return at, sink.Status(stream.InSync, "")
}

// send passes one transaction on. Nobody sees half of it.
func send(t transaction, sink stream.Sink) error {
	for _, a := range t.put {
		if err := sink.Upsert(resourceOf(a)); err != nil {
			return err
		}
	}
	for _, name := range t.deleted {
		if err := sink.Delete(name, t.revision); err != nil {
			return err
		}
	}
	return sink.Commit(t.revision)
}

func resourceOf(a article) stream.Resource {
	value, encoding := stream.ValueFromBytes([]byte(a.data))
	return stream.Resource{Key: a.name, Revision: a.revision, Value: value, Encoding: encoding}
}

// TestWarehouseSource puts the source of the guide through the suite that every
// source passes: a guide that teaches mistakes is worse than none.
func TestWarehouseSource(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) *sourcetest.Harness {
		w := newWarehouse()
		return &sourcetest.Harness{
			Source:      warehouseSource{w},
			Put:         func(key, value string) error { return w.write(streamtest.Write{Key: key, Value: value}) },
			Delete:      func(key string) error { return w.write(streamtest.Write{Key: key, Delete: true}) },
			Transaction: func(writes []streamtest.Write) error { return w.write(writes...) },
			Resumes:     true,
		}
	})
}

// A watch follows a source and can be followed by any number of subscribers. Here
// one of them prints what it is sent.
func ExampleSource() {
	w := newWarehouse()
	w.write(streamtest.Write{Key: "bolt", Value: `{ "size": 8 }`})
	w.write(streamtest.Write{Key: "nut", Value: `{"size":6}`})

	registry := watch.NewRegistry()
	defer registry.Close()
	articles, err := registry.Add(watch.Config{Name: "articles", Source: warehouseSource{w}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := articles.Prime(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	subscription := articles.Subscribe(watch.SubscribeOptions{})
	defer subscription.Close()
	var batch watch.Batch
	show := func(events int) {
		for events > 0 {
			if !subscription.Next(&batch) {
				<-subscription.Changed()
				continue
			}
			for e := range batch.Events() {
				fmt.Println(strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Resource.Key, " ", string(e.Resource.Value))))
				events--
			}
		}
		position, _ := subscription.Position()
		fmt.Println("position", position)
	}
	show(4)
	w.write(streamtest.Write{Key: "bolt", Value: `{"size":10}`}, streamtest.Write{Key: "nut", Delete: true})
	show(2)
	// Output:
	// reset
	// upsert bolt { "size": 8 }
	// upsert nut {"size":6}
	// end_of_snapshot
	// position articles@spring-2
	// upsert bolt {"size":10}
	// delete nut
	// position articles@spring-3
}

// What upstreams keep as bytes becomes JSON by the first that fits: JSON as it
// is, text as a JSON string, anything else in base64.
func ExampleValueFromBytes() {
	for _, raw := range []string{`{"n":9007199254740993}`, "just text", "\xff\x00"} {
		value, encoding := stream.ValueFromBytes([]byte(raw))
		fmt.Printf("%s %q\n", value, encoding)
	}
	// Output:
	// {"n":9007199254740993} ""
	// "just text" ""
	// "/wA=" "base64"
}

// A position is opaque to clients; those who serve them read it.
func ExampleParsePosition() {
	p, err := stream.ParsePosition("services@5f3a9c1e-17/1042")
	fmt.Println(p.Watch, p.Epoch, p.Upserts, p.AsOf, p.Partial(), err)
	_, err = stream.ParsePosition("1042")
	fmt.Println(err)
	// Output:
	// services 5f3a9c1e 17 1042 true <nil>
	// position "1042": want watch@epoch-revision, as it stood in an id
}
