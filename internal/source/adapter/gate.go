// Package adapter has what sources share: options of connections, the text of failures, waits that end
// with a context, values polled from an upstream, secrets that stay out of texts, the [Reader] of
// the events of another gateway, and the [Writer] that makes writes by compare-and-set.
//
// # An upstream that lists in pages
//
// It makes one state of a list and of the watch beside it, for sources whose
// upstream cannot read a long list at one revision. Neither has to wait for the other:
// for each key the newest revision counts.
package adapter

import "context"

// Gate admits one Watch call at a time, until it is closed.
//
// Safe for concurrent use.
type Gate struct {
	// Static after construction.
	closed context.Context
	close  context.CancelFunc
	err    error

	// Full while a call runs, so that Close can wait for it.
	running chan struct{}
}

// NewGate returns an open gate. err is why the contexts of calls end when it is closed.
func NewGate(err error) *Gate {
	g := &Gate{err: err, running: make(chan struct{}, 1)}
	g.closed, g.close = context.WithCancel(context.Background())
	return g
}

// Close ends the call that runs and waits for it. The contexts of later ones have
// already ended.
func (g *Gate) Close() {
	g.close()
	g.running <- struct{}{}
	<-g.running
}

// Enter begins a call. The returned context ends with ctx, with Close, or when end is
// called. leave ends the call.
func (g *Gate) Enter(ctx context.Context) (_ context.Context, end context.CancelCauseFunc, leave func()) {
	g.running <- struct{}{}
	ctx, end = context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.closed, func() { end(g.err) })
	return ctx, end, func() {
		stop()
		end(nil)
		<-g.running
	}
}
