package commands

import (
	"errors"
	"testing"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/changes"
)

// The condition is evaluated only where the upstream had that state: not between
// two ids, and not before a snapshot or a catch-up is complete.
func TestConditionIsEvaluatedOnWholeStates(t *testing.T) {
	const id = "w@e-1"
	upsert := func(key, id string) client.Event {
		return client.Event{Type: client.Upsert, Watch: "w", Resource: client.Resource{Key: key, Revision: "1", Value: []byte("1")}, ID: id}
	}
	gone := func(key, id string) client.Event {
		return client.Event{Type: client.Delete, Watch: "w", Resource: client.Resource{Key: key, Revision: "2"}, ID: id}
	}
	framing := func(of client.EventType, id string) client.Event { return client.Event{Type: of, Watch: "w", ID: id} }
	snapshot := []client.Event{framing(client.Hello, ""), framing(client.Reset, ""), upsert("a", ""), framing(client.EndOfSnapshot, id)}
	for name, c := range map[string]struct {
		events []client.Event
		met    bool
	}{
		"at the end of a snapshot":     {append(snapshot, upsert("b", id)), true},
		"in a snapshot":                {[]client.Event{framing(client.Hello, ""), framing(client.Reset, id), upsert("a", id), upsert("b", id), upsert("c", id), framing(client.EndOfSnapshot, id)}, false},
		"in a transaction":             {append(snapshot, upsert("b", ""), upsert("c", id)), false},
		"in a transaction of a delete": {append(snapshot, upsert("b", ""), gone("a", id)), false},
		"after a transaction":          {append(snapshot, upsert("b", ""), upsert("c", ""), gone("a", id)), true},
		"while catching up": {append(snapshot, client.Event{Type: client.Status, Watch: "w", State: client.CatchingUp},
			upsert("b", id), upsert("c", id), framing(client.Bookmark, id)), false},
		"after catching up": {append(snapshot, client.Event{Type: client.Status, Watch: "w", State: client.CatchingUp},
			upsert("b", id), framing(client.Bookmark, id)), true},
	} {
		t.Run(name, func(t *testing.T) {
			condition, err := changes.Compile("count == 2")
			if err != nil {
				t.Fatal(err)
			}
			f, met := newFollowing(t.Context(), []string{"w"}, condition, false), false
			for _, e := range c.events {
				err := f.event(e)
				if met = errors.Is(err, errMet); err != nil && !met {
					t.Fatal(err)
				}
				if met {
					break
				}
			}
			if met != c.met {
				t.Errorf("met: %t, want %t", met, c.met)
			}
		})
	}
}
