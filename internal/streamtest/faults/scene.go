package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// scene is one fault under way.
type scene struct {
	*run
	fault       Fault
	history     *streamtest.History // of the watch
	narrow      *streamtest.History // of the view
	subscribers []*subscriber
	witness     *streamtest.Connection // owned by the goroutine that plays the scene
	began       time.Time
	injected    time.Time // zero before
	before      watch.Stats
	delayed     time.Duration // by the machine, at worst
	row         Row
}

// play injects a fault, and checks the result.
func (r *run) play(ctx context.Context, f Fault) (Row, error) {
	s := &scene{
		run: r, fault: f, began: time.Now(), row: Row{Source: r.rig.Name, Fault: f.Name},
		history: r.newHistory(), narrow: r.newHistory(),
	}
	s.subscribers = subscribers(r.watch,
		part{history: s.history, ids: r.ids[0], open: func() (*watch.Watch, error) { return r.watch, nil }},
		part{history: s.narrow, ids: r.ids[1], open: func() (*watch.Watch, error) {
			return r.views.Open(r.watch, r.view, views.Request{})
		}},
	)
	s.witness = s.history.Connect(r.watch, streamtest.Dial{Client: "witness", Replica: replica, Slow: true})
	if err := s.happen(ctx); err != nil {
		return s.row, errors.Join(err, s.state())
	}
	return s.row, s.check(ctx)
}

// part is the watch or the view, with what its subscribers see.
type part struct {
	history *streamtest.History
	ids     *ids
	open    func() (*watch.Watch, error)
}

func (r *run) newHistory() *streamtest.History {
	return &streamtest.History{
		Heartbeat: heartbeat, StaleAfter: staleAfter,
		DeletesUnnumbered: unnumbered(r.rig.Source), Settled: true,
	}
}

// connections returns those to the watch and to the view.
func (s *scene) connections() []*streamtest.Connection {
	return append(s.history.Connections(), s.narrow.Connections()...)
}

// happen lets all subscribers work, injects the fault, heals it, and waits until all
// have everything.
func (s *scene) happen(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, sub := range s.subscribers {
		working.Go(func() { sub.run(ctx) })
	}
	working.Go(func() { s.delayed = pulse(ctx) })
	stop, written := make(chan struct{}), make(chan error, 1)
	go func() { written <- s.upstream.run(ctx, stop) }()
	err := s.script(ctx)
	close(stop)
	if err != nil {
		cancel() // a write may hang in an upstream that is not there
		<-written
		return err
	}
	if err := <-written; err != nil {
		return fmt.Errorf("the writer: %w", err)
	}
	if _, err := s.everythingArrives(ctx); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return s.upstream.name(s.watch.Snapshot().Epoch())
}

func (s *scene) script(ctx context.Context) error {
	if _, err := s.everythingArrives(ctx); err != nil {
		return fmt.Errorf("before the fault: %w", err)
	}
	pause(ctx, warmUp)
	if err := s.upstream.name(s.watch.Snapshot().Epoch()); err != nil {
		return err
	}
	s.before = s.watch.Stats()
	s.injected = time.Now()
	if err := s.inject(ctx); err != nil {
		return fmt.Errorf("inject: %w", err)
	}
	if err := s.notice(ctx); err != nil {
		return err
	}
	if s.fault.Heal != nil {
		pause(ctx, heartbeat+heartbeat/5)
		if err := s.fault.Heal(); err != nil {
			return fmt.Errorf("heal: %w", err)
		}
	}
	took, err := s.everythingArrives(ctx)
	s.row.Recovered = took
	pause(ctx, warmUp)
	return err
}

// inject checks meanwhile, since a restart takes time.
func (s *scene) inject(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		err := errors.New("injecting it failed the test")
		defer func() { done <- err }()
		if s.fault.Wipes {
			err = s.upstream.wipe(ctx, s.fault.Inject)
			return
		}
		err = s.fault.Inject()
	}()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		s.noticed()
		select {
		case err := <-done:
			return err
		case <-ticker.C:
		}
	}
}

// notice waits until the fault is noticed where required.
func (s *scene) notice(ctx context.Context) error {
	limit := s.rig.notice() + staleAfter + s.patience
	stale := func() bool {
		s.noticed()
		return s.watch.Status().State == stream.Stale
	}
	switch {
	case s.fault.Gone:
		if !s.await(ctx, limit, stale) {
			return fmt.Errorf("%v after the upstream was gone the status is %v: want stale", limit, s.watch.Status().State)
		}
		s.row.Stale = time.Since(s.injected)
	case s.fault.Broken:
		if !s.await(ctx, limit, s.noticed) {
			return fmt.Errorf("%v after the connection was lost the loss is not noticed", limit)
		}
	}
	return nil
}

// noticed reports whether the fault has been noticed: a connection has ended since,
// or the watch reports that it is not in sync.
func (s *scene) noticed() bool {
	if s.row.Noticed == 0 && !s.injected.IsZero() && (s.reconnects() > 0 || s.watch.Status().State != stream.InSync) {
		s.row.Noticed = time.Since(s.injected)
	}
	return s.row.Noticed > 0
}

// reconnects is how many connections to the upstream have ended since the fault.
func (s *scene) reconnects() uint64 {
	return sum(s.watch.Stats().Reconnects) - sum(s.before.Reconnects)
}

func sum(counters map[string]uint64) (n uint64) {
	for _, c := range counters {
		n += c
	}
	return n
}

// everythingArrives writes one more resource and waits until it is seen and the
// watch is in sync. It returns how long that took after the upstream had accepted
// it.
func (s *scene) everythingArrives(ctx context.Context) (time.Duration, error) {
	limit := s.rig.recover() + s.patience
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	mark, err := s.upstream.mark(ctx)
	if err != nil {
		return 0, err
	}
	taken := time.Now()
	want := stateOf([]stream.Resource{mark})[mark.Key]
	seen := func() bool {
		s.noticed()
		s.witness.Drain()
		got := s.witness.State()[mark.Key]
		arrived := got == want || s.rig.Counts && got.Value == want.Value
		return arrived && s.watch.Status().State == stream.InSync
	}
	if !s.await(ctx, limit, seen) {
		return 0, fmt.Errorf("not everything arrived within %v: of %q there is %v, want %v; the status is %v (%s)", limit,
			mark.Key, s.witness.State()[mark.Key], want, s.watch.Status().State, s.watch.Status().Reason)
	}
	return time.Since(taken), nil
}

// await polls until so returns true, or the limit is over.
func (s *scene) await(ctx context.Context, limit time.Duration, so func() bool) bool {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for deadline := time.Now().Add(limit); !so(); {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return true
}

// state describes the watch after a failure.
func (s *scene) state() error {
	up := s.watch.Upstream()
	return fmt.Errorf("the watch: %v, %s; the upstream: %+v", s.watch.Snapshot().Position(), s.watch.Status().Reason, up)
}
