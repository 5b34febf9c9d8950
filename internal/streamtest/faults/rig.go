package faults

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// Rig is a source and its upstream, for one [Run]. A nil field is an operation that
// the upstream does not support. Put, Delete and List go to the upstream itself, not
// through the proxy, and are called by one goroutine at a time; an error from them
// means that the outcome is unknown, and is expected of a killed upstream.
//
// Put and Delete must not have a timeout of their own: a paused upstream has the
// request, and makes the write when it resumes, after all were told the current
// state. They wait until it answers or the connection breaks. Nor must they retry by
// themselves if it is unknown whether the first attempt succeeded.
type Rig struct {
	// Name is that of the source in the rows. Required.
	Name string
	// Source follows one collection, empty at first, through Proxy. Required.
	Source stream.Source
	// Proxy is between them. Nil: the source has no connection.
	Proxy *realserver.Proxy

	// Put creates or replaces a resource upstream, and returns it as the source
	// must show it: the revision is the upstream's. Required.
	Put func(ctx context.Context, key, value string) (stream.Resource, error)
	// Delete removes a resource that is there, and returns the revision of
	// that; 0: the upstream gives deletes none. Required.
	Delete func(ctx context.Context, key string) (revision uint64, err error)
	// List returns the current resources, as the source must show them, and a
	// revision that is not before the last write. It reads from the upstream itself,
	// as strongly as the upstream can. Required.
	List func(ctx context.Context) (resources []stream.Resource, revision uint64, err error)

	// Counts means that the upstream has no revisions, and the source counts. Put,
	// Delete and List then give 0.
	Counts bool

	// Kill ends the upstream as a power cut does. Restart starts it with its
	// data, even if it was not killed, and returns when it serves.
	Kill    func()
	Restart func() error
	// Pause suspends the upstream with its connections open, and Resume continues
	// it.
	Pause, Resume func()
	// Wipe replaces the upstream with an empty one, in another revision order, and
	// returns when it serves.
	Wipe func() error
	// More are faults of this upstream alone, injected after the others.
	More []Fault

	// Notice is how long the source, as it is configured here, may take to
	// detect that the upstream is gone. 0: one second.
	Notice time.Duration
	// Recover is how long it may take to be in sync after the upstream is back. 0:
	// 20 seconds. Only a failing source takes so long.
	Recover time.Duration
	// Key returns the name of the i-th resource; some of the first must have
	// another beginning than others. Nil: names like a.03 and b.04.
	Key func(i int) string
	// Value returns JSON text, different for each n. Nil: about 150 bytes.
	Value func(n int) string
	// Close ends the source and all other goroutines of the rig in this
	// process, before they are counted. It may be nil.
	Close func()
}

// Fault is something that happens to an upstream.
type Fault struct {
	// Name is its name in the rows.
	Name string
	// Inject makes it happen, and returns when it has.
	Inject func() error
	// Heal ends it, and returns when the upstream can be reached again. Nil:
	// the upstream was never away for longer than Inject took.
	Heal func() error
	// Gone means that the upstream cannot be reached until Heal, so that status must
	// say stale.
	Gone bool
	// Wipes means that the upstream has lost its content, or was restored from a
	// backup, and begins another revision order.
	Wipes bool
	// Broken means that the connection is certainly lost, so that the source must
	// notice.
	Broken bool
}

const (
	delay   = 150 * time.Millisecond
	trickle = 6 << 10 // bytes a second: less than what is written
)

// faults returns the faults that can be injected, in the order of injection.
func (r *Rig) faults() []Fault {
	return append(append(r.networkFaults(), r.serverFaults()...), r.More...)
}

func (r *Rig) networkFaults() []Fault {
	p := r.Proxy
	if p == nil {
		return nil
	}
	do := func(f func()) func() error { return func() error { f(); return nil } }
	return []Fault{
		{Name: "cut", Inject: do(p.Cut), Broken: true},
		{Name: "cut and refused", Inject: do(func() { p.Refuse(); p.Cut() }), Heal: do(p.Heal), Gone: true},
		{Name: "stall", Inject: do(p.Stall), Heal: do(p.Heal), Gone: true},
		{Name: "delay", Inject: do(func() { p.Delay(delay) }), Heal: do(p.Heal)},
		{Name: "trickle", Inject: do(func() { p.Trickle(trickle) }), Heal: do(p.Heal)},
		{Name: "half-close to source", Inject: do(func() { p.HalfClose(realserver.Client) }), Broken: true},
		{Name: "half-close to upstream", Inject: do(func() { p.HalfClose(realserver.Upstream) })},
	}
}

func (r *Rig) serverFaults() []Fault {
	var out []Fault
	if r.Pause != nil {
		out = append(out, Fault{Name: "pause", Gone: true,
			Inject: func() error { r.Pause(); return nil },
			Heal:   func() error { r.Resume(); return nil }})
	}
	if r.Kill != nil {
		out = append(out, Fault{Name: "kill", Gone: true,
			Inject: func() error { r.Kill(); return nil },
			Heal:   r.Restart})
	}
	if r.Restart != nil {
		out = append(out, Fault{Name: "restart", Inject: r.Restart, Broken: true})
	}
	if r.Wipe != nil {
		out = append(out, Fault{Name: "wipe", Inject: r.Wipe, Wipes: true, Broken: true})
	}
	return out
}

func (r *Rig) key(i int) string {
	if r.Key != nil {
		return r.Key(i)
	}
	return fmt.Sprintf("%c.%02d", 'a'+i%3, i)
}

func (r *Rig) value(n int) string {
	if r.Value != nil {
		return r.Value(n)
	}
	return fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("–watch", 16))
}

// prefix narrows a watch to some of the keys, but not all.
func (r *Rig) prefix(keys int) string {
	first := r.key(0)
	for n := range len(first) {
		for i := range keys {
			if !strings.HasPrefix(r.key(i), first[:n+1]) {
				return first[:n+1]
			}
		}
	}
	return first
}

func (r *Rig) notice() time.Duration  { return cmp.Or(r.Notice, time.Second) }
func (r *Rig) recover() time.Duration { return cmp.Or(r.Recover, 20*time.Second) }
