package gatewaytest

import (
	"log/slog"
	"sync"
	"testing"

	viewsource "github.com/watchtide/watchtide/stream/source/view"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// Views opens views for a gateway, each a watch that follows the watch of which it is a
// part, as those of a configuration do.
//
// All methods may be called from any goroutine.
type Views struct {
	t testing.TB // static after construction

	mu      sync.Mutex // guards the following fields
	open    map[viewKey]*watch.Watch
	clients []string // that asked for a view, in this order
	refusal error    // what Open returns, if not nil
}

// viewKey says which view it is.
type viewKey struct {
	of         *watch.Watch
	definition string
}

// NewViews returns views that last until the end of the test.
func NewViews(t testing.TB) *Views {
	return &Views{t: t, open: map[viewKey]*watch.Watch{}}
}

// Open returns the view of w that d selects, shared by all who ask for the same.
func (v *Views) Open(w *watch.Watch, d *view.Definition, client string) (*watch.Watch, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients = append(v.clients, client)
	if v.refusal != nil {
		return nil, v.refusal
	}
	key := viewKey{w, d.ID()}
	if v.open[key] == nil {
		made, err := v.start(w, d)
		if err != nil {
			return nil, err
		}
		v.open[key] = made
	}
	return v.open[key], nil
}

// start returns a view with a registry of its own, since it has the name of its watch.
// It is removed with the watch.
func (v *Views) start(w *watch.Watch, d *view.Definition) (*watch.Watch, error) {
	registry := watch.NewRegistry()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-w.Done():
		case <-stop:
		}
		registry.Close()
	}()
	v.t.Cleanup(func() { close(stop); <-stopped })
	return registry.Add(watch.Config{
		Name: w.Name(), SourceName: w.SourceName(), Source: viewsource.New(w, d), OnDemand: true, Logger: slog.New(slog.DiscardHandler),
	})
}

// Refuse makes Open return an error; nil: no longer.
func (v *Views) Refuse(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refusal = err
}

// Clients returns who asked for a view since the last call.
func (v *Views) Clients() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	clients := v.clients
	v.clients = nil
	return clients
}
