package access

import (
	"context"

	"github.com/watchtide/watchtide/access/audit"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// Switch is what a stream follows from now on of one of its watches.
//
// Static after construction.
type Switch struct {
	Index       int          // of the watch in the stream
	Part        Part         // as it is from now on
	Watch       *watch.Watch // the part as a watch; nil: it is the same as before, or nothing
	Differences *log.Differences
}

// Switch returns how the stream of somebody goes on that follows p, the watch of that index:
// narrowed as before, by the rules of l. The error says why it cannot.
func (l *Lookup) Switch(ctx context.Context, index int, p Part, who *credential.Identity) (Switch, error) {
	entry, _ := l.config.Watches.Declared(p.Name())
	found := Found{lookup: l, watch: p.watch, rules: rules{l.config.Policy, who, entry}}
	part, refused := found.Narrow(WithAction(WithIdentity(ctx, who), audit.Move), p.narrowing, p.client)
	if refused != nil {
		return Switch{}, refused
	}
	if part.Is(p) {
		return Switch{Index: index, Part: part}, nil
	}
	w, err := part.Open(views.Request{Client: p.client})
	if err != nil {
		return Switch{}, err
	}
	return Switch{Index: index, Part: part, Watch: w, Differences: l.config.Views.Differences()}, nil
}

// Open returns the part as a watch, once its stream comes to follow it. A view that nobody has
// followed until then is opened again; if that is not possible, the one that was removed is
// returned.
func (s Switch) Open() *watch.Watch {
	select {
	case <-s.Watch.Done():
	default:
		return s.Watch
	}
	if again, err := s.Part.Open(views.Request{Client: s.Part.client}); err == nil {
		return again
	}
	return s.Watch
}

// Loss returns how a stream goes on that may see nothing any more of p, the watch of that
// index.
func (l *Lookup) Loss(index int, p Part) Switch {
	return Switch{Index: index, Part: p, Differences: l.config.Views.Differences()}
}
