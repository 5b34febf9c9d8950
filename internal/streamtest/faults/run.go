package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"go.uber.org/goleak"
)

const (
	// heartbeat is how soon each subscriber must be able to distinguish fresh
	// from stale; an outage lasts longer, so that it matters.
	heartbeat = time.Second
	// staleAfter is how long a lost upstream may go unreported.
	staleAfter = 100 * time.Millisecond
	// warmUp is how long all subscribers work before the fault.
	warmUp = 250 * time.Millisecond
	// slack is what a busy machine may add to a time that is checked.
	slack = 4 * time.Second
	// look is how often the times of a row are checked.
	look = 2 * time.Millisecond

	watchName = "w"
	replica   = "gateway"
)

// run is one run: a watch, and the writes upstream.
type run struct {
	rig      *Rig
	registry *watch.Registry
	watch    *watch.Watch
	upstream *upstream
	ids      [2]*ids // of the watch and of the view
	views    *views.Views
	view     *view.Definition
	patience time.Duration // added to each time that is checked
}

// Run puts a source through all faults that the rig can inject, and logs a [Row] for
// each of them. The test fails with all violations.
func Run(t *testing.T, rig *Rig) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	r, err := newRun(t.Context(), rig)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rig.faults() {
		t.Run(f.Name, func(t *testing.T) {
			row, err := r.play(t.Context(), f)
			if err != nil {
				t.Fatalf("%s, %s: %v", rig.Name, f.Name, err)
			}
			t.Log(row)
		})
	}
	if err := r.close(before); err != nil {
		t.Error(err)
	}
}

// newRun starts the watch on the upstream, and fills the upstream.
func newRun(ctx context.Context, rig *Rig) (*run, error) {
	r := &run{
		rig: rig, registry: watch.NewRegistry(), upstream: newUpstream(rig),
		ids: [2]*ids{{}, {}}, patience: slack,
	}
	var err error
	if r.view, err = view.Parse(view.Params{Prefix: rig.prefix(keys)}); err != nil {
		return nil, fmt.Errorf("the view: %w", err)
	}
	r.views = views.New(views.Config{})
	if err := r.begin(ctx); err != nil {
		r.views.Close()
		r.registry.Close()
		return nil, fmt.Errorf("before the first fault: %w", err)
	}
	return r, nil
}

func (r *run) begin(ctx context.Context) (err error) {
	source := r.rig.Source
	if r.rig.Counts {
		source = r.upstream.claims.of(source)
	}
	r.watch, err = r.registry.Add(watch.Config{
		Name: watchName, SourceName: r.rig.Name, Source: source, StaleAfter: staleAfter,
		Backoff: watch.Backoff{Min: 20 * time.Millisecond, Max: 200 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	for range keys {
		if _, err := r.upstream.write(ctx, nil); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.rig.recover()+r.patience)
	defer cancel()
	return r.watch.Prime(ctx)
}

// close ends everything, and looks for goroutines that were not there before.
func (r *run) close(before goleak.Option) error {
	r.views.Close()
	r.registry.Close()
	if r.rig.Close != nil {
		r.rig.Close()
	}
	if r.rig.Proxy != nil {
		r.rig.Proxy.Close()
	}
	if err := goleak.Find(before); err != nil {
		return fmt.Errorf("the source left goroutines behind: %w", err)
	}
	return nil
}

func unnumbered(source stream.Source) bool {
	u, ok := source.(stream.DeletesUnnumbered)
	return ok && u.DeletesUnnumbered()
}
