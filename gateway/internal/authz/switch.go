package authz

import (
	"context"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// Switch is a change of the part that a stream follows of one of its watches.
//
// Static after construction.
type Switch struct {
	Index int          // of the watch in the stream
	Part  Part         // the new part
	Watch *watch.Watch // the new part as a watch; nil: it is unchanged
	Keep  bool         // both parts are windows of the same view
	Move  uint64       // the number of the move; 0: what its holder may see has changed
}

// Switch returns the switch of a stream of an identity that follows p, the watch of that index.
// The new part is narrowed as before, under the rules of l. The error says why the stream
// cannot go on.
func (l *Lookup) Switch(ctx context.Context, index int, p Part, who *credential.Identity) (Switch, error) {
	entry, _ := l.config.Watches.Declared(p.Name())
	handle := Handle{lookup: l, watch: p.watch, rules: l.rules(who, entry)}
	part, refused := handle.Narrow(WithAction(WithIdentity(ctx, who), access.Move), p.narrowing, p.client)
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
	return Switch{Index: index, Part: part, Watch: w}, nil
}

// Open returns the new part as a watch, when the stream begins to follow it. A view that was
// removed in the meantime is opened again. If that is impossible, Open returns the removed one.
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
