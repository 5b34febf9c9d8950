package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/changes"
)

// errMet ends a watch: the condition of --wait-for holds.
var errMet = errors.New("--wait-for is true")

// following is the state of the watches that a watch command follows.
type following struct {
	// Static after construction.
	ctx       context.Context // of the command, for evaluations that take long
	condition *changes.Condition
	names     []string
	shown     bool                         // on a screen, which needs the resources
	sortKey   func(client.Resource) string // by which a screen sorts them; nil: by their keys

	watches map[string]*followed
}

// followed is one watch.
type followed struct {
	replica   *client.Replica[client.Resource]
	total     atomic.Int64       // of a window: how many resources it is one of
	resources *changes.Resources // nil: there is no condition
	changed   bool               // since the last evaluation
	met       bool               // at the last evaluation
	doubt     error              // why it could not be evaluated
}

func newFollowing(ctx context.Context, names []string, condition *changes.Condition, shown bool) *following {
	f := &following{ctx: ctx, condition: condition, names: names, shown: shown, watches: map[string]*followed{}}
	for _, name := range names {
		w := &followed{replica: client.NewReplica(name)}
		if condition != nil {
			w.resources = changes.NewResources()
		}
		f.watches[name] = w
	}
	return f
}

// event handles an event. It returns errMet when the condition is true of every watch.
func (f *following) event(e client.Event) error {
	if !f.shown && f.condition == nil && isChange(e) {
		return nil // only passed on, and not stored: nothing reads it
	}
	for _, w := range f.watches {
		_ = w.replica.Apply(e) // nothing is decoded
	}
	if w := f.watches[e.Watch]; w != nil {
		if e.Type == client.EndOfSnapshot || e.Type == client.Bookmark {
			w.total.Store(int64(e.Total))
		}
		if err := w.remember(e); err != nil {
			return fmt.Errorf("watch %s: the value of %q: %w", e.Watch, e.Key, err)
		}
	}
	if e.ID == "" || f.condition == nil {
		return nil
	}
	return f.evaluate()
}

func isChange(e client.Event) bool { return e.Type == client.Upsert || e.Type == client.Delete }

// remember stores the resources for the condition.
func (w *followed) remember(e client.Event) error {
	if w.resources == nil {
		return nil
	}
	w.changed = true
	switch e.Type {
	case client.Reset:
		w.resources.Clear()
	case client.Delete:
		w.resources.Delete(e.Resource.ID())
	case client.Upsert:
		return w.resources.Put(e.Resource.ID(), e.Value)
	}
	return nil
}

func (f *following) evaluate() error {
	all := true
	for name, w := range f.watches {
		if w.replica.Progress().Pending {
			all = false
			continue
		}
		if w.changed {
			w.met, w.doubt = f.condition.Holds(f.ctx, name, w.resources)
			w.changed = false
		}
		all = all && w.met
	}
	if all {
		return errMet
	}
	return nil
}

// why describes, for a person, why the watches have not ended.
func (f *following) why() string {
	var out strings.Builder
	for _, name := range f.names {
		w := f.watches[name]
		switch fresh := w.replica.Freshness(); {
		case !w.replica.Progress().Complete:
			fmt.Fprintf(&out, "; %s is not complete (%s)", name, strings.TrimSuffix(string(fresh.State)+": "+fresh.Reason, ": "))
		case w.doubt != nil:
			fmt.Fprintf(&out, "; --wait-for cannot be evaluated for %s, which has %s: %v", name, count(w.replica.Len(), "resource", "resources"), w.doubt)
		case f.condition != nil && !w.met:
			fmt.Fprintf(&out, "; --wait-for is not true of %s, which has %s", name, count(w.replica.Len(), "resource", "resources"))
		}
	}
	return out.String()
}
