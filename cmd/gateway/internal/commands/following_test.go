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

// Events after the newest id when a connection ended are dropped: a replica that
// is behind sends older values first.
func TestEventsWithoutIDAreDropped(t *testing.T) {
	upsert := func(key, revision, id string) client.Event {
		return client.Event{Type: "upsert", Watch: "w", Resource: client.Resource{Key: key, Revision: revision, Value: []byte("1")}, ID: id}
	}
	framing := func(name, id string) client.Event { return client.Event{Type: name, Watch: "w", ID: id} }
	f := newFollowing(t.Context(), []string{"w"}, nil, true)
	holds := func() string {
		text := ""
		for _, id := range f.watches["w"].replica.IDs() {
			r, _ := f.watches["w"].replica.Resource(id)
			text += r.Key + "@" + r.Revision + " "
		}
		return text
	}
	for _, step := range []struct {
		event client.Event
		holds string
	}{
		{framing("hello", ""), ""},
		{framing("reset", "w@e-0/1"), ""},
		{upsert("a", "1", ""), ""},
		{framing("end_of_snapshot", "w@e-1"), "a@1 "},
		{upsert("a", "2", "w@e-2"), "a@2 "},
		{upsert("b", "4", ""), "a@2 "},
		{upsert("a", "4", ""), "a@2 "},
		// The connection is lost, and the next replica is at 2.
		{framing("hello", ""), "a@2 "},
		{framing("end_of_snapshot", "w@e-2"), "a@2 "},
		{upsert("a", "3", "w@e-3"), "a@3 "},
		{client.Event{Type: "status", Watch: "w", State: "stale"}, "a@3 "},
		{upsert("b", "4", ""), "a@3 "},
		{upsert("a", "4", "w@e-4"), "a@4 b@4 "},
	} {
		if err := f.event(step.event); err != nil {
			t.Fatal(err)
		}
		if got := holds(); got != step.holds {
			t.Errorf("after %+v: %q, want %q", step.event, got, step.holds)
		}
		if state, _, _ := f.watches["w"].replica.State(); step.event.Type == "status" && state != step.event.State {
			t.Errorf("state %s, want %s at once", state, step.event.State)
		}
	}
	_ = f.event(upsert("c", "5", ""))
	f.disconnected(errors.New("gone"))
	_ = f.event(upsert("d", "6", "w@e-6"))
	if got := holds(); got != "a@4 b@4 d@6 " {
		t.Errorf("after a lost connection: %q", got)
	}
}
