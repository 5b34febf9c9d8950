package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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
	shown     bool // on a screen, which needs the resources

	mu sync.Mutex
	// Guarded by mu: events change it, and a screen reads it.
	watches map[string]*followed
}

// followed is one watch. Guarded by following.mu.
type followed struct {
	tail      client.Tail
	replica   *client.Replica
	resources *changes.Resources // nil: there is no condition
	changed   bool               // since the last evaluation
	met       bool               // at the last evaluation
	doubt     error              // why it could not be evaluated
}

func newFollowing(ctx context.Context, names []string, condition *changes.Condition, shown bool) *following {
	f := &following{ctx: ctx, condition: condition, names: names, shown: shown, watches: map[string]*followed{}}
	for _, name := range names {
		w := &followed{replica: client.NewReplica()}
		if condition != nil {
			w.resources = changes.NewResources()
		}
		f.watches[name] = w
	}
	return f
}

// event handles an event. Its change is applied once an id has come. It returns
// errMet when the condition is true of every watch.
func (f *following) event(e client.Event) error {
	if !f.shown && f.condition == nil && isChange(e) {
		return nil // only passed on, and not stored: nothing reads it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Type == "hello" {
		for _, w := range f.watches {
			w.tail.Drop()
			w.replica.Apply(e)
		}
	}
	if w := f.watches[e.Watch]; w != nil {
		if err := w.apply(w.tail.Take(e)); err != nil {
			return err
		}
	}
	if e.ID == "" {
		return nil
	}
	for _, w := range f.watches {
		if err := w.apply(w.tail.Commit()); err != nil {
			return err
		}
	}
	if f.condition == nil {
		return nil
	}
	return f.evaluate()
}

// apply applies events.
func (w *followed) apply(events []client.Event) error {
	for _, e := range events {
		w.replica.Apply(e)
		if err := w.remember(e); err != nil {
			return fmt.Errorf("watch %s: the value of %q: %w", e.Watch, e.Key, err)
		}
	}
	return nil
}

func isChange(e client.Event) bool { return e.Type == "upsert" || e.Type == "delete" }

// remember stores the resources for the condition.
func (w *followed) remember(e client.Event) error {
	if w.resources == nil {
		return nil
	}
	w.changed = true
	switch e.Type {
	case "reset":
		w.resources.Clear()
	case "delete":
		w.resources.Delete(e.Resource.ID())
	case "upsert":
		return w.resources.Put(e.Resource.ID(), e.Value)
	}
	return nil
}

func (f *following) evaluate() error {
	all := true
	for name, w := range f.watches {
		if !w.replica.Consistent() {
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

// disconnected records that a connection was lost.
func (f *following) disconnected(reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.watches {
		w.tail.Drop()
		w.replica.Disconnected(time.Now(), reason.Error())
	}
}

// why describes, for a person, why the watches have not ended.
func (f *following) why() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out strings.Builder
	for _, name := range f.names {
		w := f.watches[name]
		switch state, _, reason := w.replica.State(); {
		case !w.replica.Synced():
			fmt.Fprintf(&out, "; %s is not complete (%s)", name, strings.TrimSuffix(state+": "+reason, ": "))
		case w.doubt != nil:
			fmt.Fprintf(&out, "; --wait-for cannot be evaluated for %s, which has %s: %v", name, count(w.replica.Count(), "resource", "resources"), w.doubt)
		case f.condition != nil && !w.met:
			fmt.Fprintf(&out, "; --wait-for is not true of %s, which has %s", name, count(w.replica.Count(), "resource", "resources"))
		}
	}
	return out.String()
}
