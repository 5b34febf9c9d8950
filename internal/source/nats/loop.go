package nats

import (
	"context"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/stream"
)

const (
	// patience is how long messages are held back before the server is queried
	// for outstanding ones; it doubles up to maxPatience while nothing arrives.
	patience    = 50 * time.Millisecond
	maxPatience = time.Second
	// together is how many waiting messages become visible at once.
	together = 256
	// share is the part of the time that comparing may take, if the bucket is so
	// large that the poll interval is short for it.
	share = 20
)

// from is the sequence that the consumer begins with; 0: the last message of
// each key.
func (r *reader) from() uint64 {
	if r.resume {
		return r.at + 1
	}
	return 0
}

// alarms are the timers of the reader.
type alarms struct {
	stalled, asking, polling *time.Timer
	wait                     time.Duration // patience
	armed                    bool          // the timer asking is running
	at                       uint64        // the reader's position when the server was last queried
}

// read handles deliveries until something ends it.
func (r *reader) read(ctx context.Context, deliveries <-chan delivery, interval time.Duration) error {
	if err := r.ask(ctx); err != nil {
		return err
	}
	a := &alarms{
		stalled: time.NewTimer(r.stall), asking: time.NewTimer(patience), polling: time.NewTimer(interval),
		wait: patience, armed: true,
	}
	defer a.stop()
	for err := r.commit(ctx); ; err = r.commit(ctx) {
		if err != nil {
			return err
		}
		a.arm(r.settled())
		if err := r.step(ctx, deliveries, interval, a); err != nil {
			return err
		}
	}
}

// step waits for the next event, and handles it.
func (r *reader) step(ctx context.Context, deliveries <-chan delivery, interval time.Duration, a *alarms) error {
	select {
	case d := <-deliveries:
		err := r.takeAll(d, deliveries)
		a.stalled.Reset(r.stall)
		r.heard = r.meter.received.Load()
		return err
	case <-a.asking.C:
		a.asked(r.at)
		return r.ask(ctx)
	case <-a.polling.C:
		began := time.Now()
		err := r.poll(ctx)
		a.polling.Reset(max(interval, share*time.Since(began)))
		return err
	case <-a.stalled.C:
		a.stalled.Reset(r.stall)
		if r.busy() || len(deliveries) > 0 {
			return nil // they arrived while a request was running
		}
		return fmt.Errorf("%w: nothing received for %v", stream.ErrStalled, r.stall)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// busy reports whether so many bytes arrived since the last delivery, and since
// it was last called, that a large value is on its way.
func (r *reader) busy() bool {
	before := r.heard
	r.heard = r.meter.received.Load()
	return r.heard-before >= busy
}

// takeAll takes a delivery, and those that wait behind it.
func (r *reader) takeAll(d delivery, deliveries <-chan delivery) error {
	for n := 1; ; n++ {
		if err := r.take(d); err != nil || n == together {
			return err
		}
		select {
		case d = <-deliveries:
		default:
			return nil
		}
	}
}

// arm schedules a query to the server, if something is held back.
func (a *alarms) arm(settled bool) {
	switch {
	case settled && a.armed:
		a.asking.Stop()
		a.armed, a.wait = false, patience
	case !settled && !a.armed:
		a.asking.Reset(a.wait)
		a.armed = true
	}
}

// asked records that the server is queried, and the position of the reader.
func (a *alarms) asked(at uint64) {
	a.armed = false
	a.wait = min(2*a.wait, maxPatience)
	if at != a.at {
		a.wait, a.at = patience, at
	}
}

func (a *alarms) stop() {
	for _, t := range []*time.Timer{a.stalled, a.asking, a.polling} {
		t.Stop()
	}
}
