package main

import (
	"errors"
	"testing"

	"github.com/watchtide/watchtide/cmd/gateway/client"
	"github.com/watchtide/watchtide/cmd/gateway/waitfor"
)

// The condition is looked at only where the upstream had that state: not between
// two ids, and not before a snapshot or a catch-up is complete.
func TestConditionIsEvaluatedOnWholeStates(t *testing.T) {
	const id = "w@e-1"
	upsert := func(key, id string) client.Event {
		return client.Event{Type: "upsert", Watch: "w", Resource: client.Resource{Key: key, Revision: "1", Value: []byte("1")}, ID: id}
	}
	gone := func(key, id string) client.Event {
		return client.Event{Type: "delete", Watch: "w", Resource: client.Resource{Key: key, Revision: "2"}, ID: id}
	}
	framing := func(name, id string) client.Event { return client.Event{Type: name, Watch: "w", ID: id} }
	snapshot := []client.Event{framing("hello", ""), framing("reset", ""), upsert("a", ""), framing("end_of_snapshot", id)}
	for name, c := range map[string]struct {
		events []client.Event
		met    bool
	}{
		"at the end of a snapshot":     {append(snapshot, upsert("b", id)), true},
		"in a snapshot":                {[]client.Event{framing("hello", ""), framing("reset", id), upsert("a", id), upsert("b", id), upsert("c", id), framing("end_of_snapshot", id)}, false},
		"in a transaction":             {append(snapshot, upsert("b", ""), upsert("c", id)), false},
		"in a transaction of a delete": {append(snapshot, upsert("b", ""), gone("a", id)), false},
		"after a transaction":          {append(snapshot, upsert("b", ""), upsert("c", ""), gone("a", id)), true},
		"while catching up": {append(snapshot, client.Event{Type: "status", Watch: "w", State: "catching_up"},
			upsert("b", id), upsert("c", id), framing("bookmark", id)), false},
		"after catching up": {append(snapshot, client.Event{Type: "status", Watch: "w", State: "catching_up"},
			upsert("b", id), framing("bookmark", id)), true},
	} {
		t.Run(name, func(t *testing.T) {
			condition, err := waitfor.Compile("count == 2")
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
