package gatewaytest

import (
	"sync"
	"testing"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// Views opens views for a gateway, and records who asks for them.
//
// All methods may be called from any goroutine.
type Views struct {
	*views.Views // static after construction

	mu      sync.Mutex // guards the following fields
	clients []string   // that asked for a view, in this order
	refusal error      // what Open returns, if not nil
}

// NewViews returns views that last until the end of the test.
func NewViews(t testing.TB) *Views {
	v := &Views{Views: views.New(views.Config{})}
	t.Cleanup(v.Close)
	return v
}

// Open implements gateway.Views.
func (v *Views) Open(w *watch.Watch, d *view.Definition, r views.Request) (*watch.Watch, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients = append(v.clients, r.Client)
	if v.refusal != nil {
		return nil, v.refusal
	}
	return v.Views.Open(w, d, r)
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
