package gatewaytest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Watches is a registry of watches with scripted sources, and views of them.
type Watches struct {
	t        testing.TB
	Registry *watch.Registry
	Views    *views.Views
	Sources  map[string]*Script
}

// NewWatches returns a registry with the named watches, until the end of the test.
func NewWatches(t testing.TB, names ...string) *Watches {
	t.Helper()
	r := &Watches{t: t, Registry: watch.NewRegistry(), Sources: map[string]*Script{}}
	r.Views = views.New(views.Config{MaxPerClient: 20_000})
	t.Cleanup(r.Registry.Close)
	t.Cleanup(r.Views.Close)
	for _, name := range names {
		r.Add(watch.Config{Name: name})
	}
	return r
}

// Add adds a watch with a scripted source.
func (r *Watches) Add(c watch.Config) {
	r.t.Helper()
	s := NewScript()
	c.SourceName, c.Source, c.Logger = "scripted", s, slog.New(slog.DiscardHandler)
	if _, err := r.Registry.Add(c); err != nil {
		r.t.Fatal(err)
	}
	r.Sources[c.Name] = s
}

// Replace replaces a watch, with a new source, as a reload does; the others are kept.
func (r *Watches) Replace(c watch.Config) {
	r.t.Helper()
	d := r.Registry.Draft()
	for _, w := range r.Registry.Watches() {
		if w.Name() != c.Name {
			d.Keep(w.Name())
		}
	}
	s := NewScript()
	c.SourceName, c.Source, c.Logger = "scripted", s, slog.New(slog.DiscardHandler)
	if _, err := d.Add(c); err != nil {
		r.t.Fatal(err)
	}
	d.Commit()
	r.Sources[c.Name] = s
}

// Script is a source that a test controls.
type Script struct{ Steps chan func(stream.Sink) error }

// NewScript returns a source that waits for its first step.
func NewScript() *Script { return &Script{Steps: make(chan func(stream.Sink) error)} }

// Watch implements stream.Source.
func (s *Script) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	for {
		select {
		case step := <-s.Steps:
			if err := step(sink); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Resource returns an upsert for a test.
func Resource(key string, revision uint64, value string) stream.Resource {
	return stream.Resource{Key: key, Revision: revision, Value: []byte(value)}
}

// Do makes the source of a watch take a step.
func (r *Watches) Do(watch string, step func(stream.Sink) error) {
	r.Sources[watch].Steps <- step
}

// Prime gives a watch its first snapshot.
func (r *Watches) Prime(watch string, revision uint64, resources ...stream.Resource) {
	r.Do(watch, func(sink stream.Sink) error {
		return errors.Join(sink.Reset("e1"), UpsertAll(sink, resources), sink.Commit(revision))
	})
}

// Commit changes resources in one transaction.
func (r *Watches) Commit(watch string, revision uint64, resources ...stream.Resource) {
	r.Do(watch, func(sink stream.Sink) error {
		return errors.Join(UpsertAll(sink, resources), sink.Commit(revision))
	})
}

// UpsertAll upserts resources, up to the first error.
func UpsertAll(sink stream.Sink, resources []stream.Resource) error {
	for _, one := range resources {
		if err := sink.Upsert(one); err != nil {
			return err
		}
	}
	return nil
}

// LargeOnes returns resources whose snapshot is larger than may be sent without a
// lease.
func LargeOnes(n int, revision uint64) (all []stream.Resource) {
	value := `"` + strings.Repeat("x", 4<<10) + `"`
	for i := range n {
		all = append(all, Resource(fmt.Sprintf("k%03d", i), revision, value))
	}
	return all
}

// ClientNumber returns a different client for each i, each in an IPv6 network of its
// own.
func ClientNumber(i int) limits.Client {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(a[4:], uint32(i))
	return limits.ClientOf(netip.AddrFrom16(a))
}

// Length returns full, or less with -short: the number of repetitions or items of
// a test.
func Length(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}
