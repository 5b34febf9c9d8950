package views

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// NewDeclared returns a set of the views that a configuration declares. They are fed by
// goroutines of their own, so that no client delays them, and their memory counts as that of any
// watch: what a count or a window is made of is charged to its watch by its source. Close it.
func NewDeclared() *Views { return New(declared) }

// declared limits nothing.
var declared = Config{Max: math.MaxInt32, MaxPerClient: 1 << 24, MaxOrdersPerClient: 1 << 24, MaxBytes: math.MaxInt64 / 4}

// LimitGroups sets the number of groups of a declared count.
func (v *Views) LimitGroups(most int) {
	c := declared
	c.MaxGroups = most
	v.Reconfigure(c)
}

// View returns what makes a watch the view that d selects of another one, which has a name and
// which open returns.
func (v *Views) View(name string, open func() (*watch.Watch, error), d *view.Definition) *watch.ViewConfig {
	explain := func(err error) error { return fmt.Errorf("watch %q, of which this is a view%w", name, err) }
	return &watch.ViewConfig{
		Open: func() (*watch.Watch, error) {
			of, err := open()
			switch {
			case err != nil:
				return nil, explain(fmt.Errorf(": %w", err))
			case of.Ended():
				return nil, explain(errRemoved)
			}
			return of, nil
		},
		Feed: func(ctx context.Context, of *watch.Watch, to *watch.View) error {
			err := v.feed(ctx, of, d, to)
			if errors.Is(err, errRemoved) {
				return explain(err)
			}
			return err
		},
	}
}

// errRemoved is why a view is not fed any more.
var errRemoved = errors.New(", was removed")

// errClosed is why a view is not fed.
var errClosed = errors.New("the views were closed")

// feed keeps a declared view in step with its watch, until ctx ends or the watch.
func (v *Views) feed(ctx context.Context, of *watch.Watch, d *view.Definition, to *watch.View) error {
	defer of.Follow()() // which keeps a template from removing the watch
	e, ended := v.declare(of, d, to)
	if e == nil {
		return errClosed
	}
	var err error
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-of.Done():
		err = errRemoved
	case <-ended:
		return errClosed
	}
	v.mu.Lock()
	if !e.removed.Load() {
		e.drop()
	}
	v.mu.Unlock()
	<-ended
	return err
}

// declare begins to feed a declared view. ended is closed once nothing feeds it any more, after it
// was removed. The view is nil if there can be none.
func (v *Views) declare(of *watch.Watch, d *view.Definition, to *watch.View) (e *entry, ended <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, nil
	}
	e, ended = newDeclared(v, v.parentOf(of), d, to)
	v.enter(e)
	e.started = true
	v.build(e)
	return e, ended
}

// newDeclared returns a view that nobody feeds yet. ended is closed at its end.
func newDeclared(v *Views, p *parent, d *view.Definition, to *watch.View) (e *entry, ended <-chan struct{}) {
	over := make(chan struct{})
	e = &entry{state: to.State, subject: subject{
		views: v, parent: p, definition: d, watch: to.Watch, declared: to, account: to.Account(),
		costly: d.Costly(), hides: true, close: func() {},
	}}
	e.wanted.Store(math.MaxUint64)
	e.alone.Store(e.costly)
	e.end = func() {
		e.release()
		e.state.Abandon()
		e.left()
		close(over)
	}
	return e, over
}

// inUse reports whether a view must be kept: somebody uses it, or it is declared.
func (e *entry) inUse() bool {
	return e.declared != nil || e.watch.InUse() || e.order != nil && e.order.inUse()
}
