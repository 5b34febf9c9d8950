//go:build servers

package thirdparty

import (
	"maps"
	"slices"
	"testing"
)

// Clients that others wrote follow a part of a watch. Each of them has exactly this part:
// when resources enter, change, leave and are deleted, after it has lost its connection,
// and after it has lost its replica and came back to another one, which has just been
// started and has no view yet. None of them is sent a second reset.
func TestThirdPartyClientsResumeFilteredStreams(t *testing.T) {
	program := build(t)
	upstream := start(t, program, "{ type: store }")
	order := func(team string, n int) map[string]any {
		return map[string]any{"team": team, "n": n, "note": "not asked for"}
	}
	upstream.put(t, "a", order("red", 1))
	upstream.put(t, "b", order("blue", 1))
	upstream.put(t, "c", order("red", 1))
	upstream.put(t, "other", order("green", 1))
	first := startReplica(t, program, upstream)

	followers := newFollowers(t, first)
	const red1, red2, red3 = `{"n":1,"team":"red"}`, `{"n":2,"team":"red"}`, `{"n":3,"team":"red"}`
	all := func(ends int, state map[string]string, deletes ...string) {
		t.Helper()
		for _, f := range followers {
			saw := f.await(t, ends, state)
			if saw.Resets != 1 || saw.Upserts["other"] != 0 || len(saw.Broken) > 0 {
				t.Fatalf("%s has seen %+v; want one reset, and only resources that match", f.name, saw)
			}
			if !slices.Equal(saw.Deletes, deletes) {
				t.Fatalf("%s was sent deletes of %q; want %q", f.name, saw.Deletes, deletes)
			}
		}
	}
	all(1, map[string]string{"a": red1, "c": red1})

	// Resources enter, change, leave and are deleted.
	upstream.put(t, "other", order("green", 2))
	upstream.put(t, "b", order("red", 2))
	upstream.put(t, "a", order("red", 3))
	upstream.put(t, "c", order("blue", 2))
	all(1, map[string]string{"a": red3, "b": red2}, "c")
	upstream.delete(t, "a")
	all(1, map[string]string{"b": red2}, "c", "a")

	// The connection is lost.
	for _, f := range followers {
		f.proxy.Refuse()
		f.proxy.Cut()
	}
	upstream.put(t, "b", order("blue", 3))
	upstream.put(t, "c", order("red", 3))
	upstream.put(t, "d", order("red", 1))
	for _, f := range followers {
		f.proxy.Heal()
	}
	all(2, map[string]string{"c": red3, "d": red1}, "c", "a", "b")

	// The replica is lost. The other one has only seen what comes now.
	second := startReplica(t, program, upstream)
	for _, f := range followers {
		f.proxy.Refuse()
	}
	first.Kill()
	upstream.put(t, "c", order("blue", 4))
	upstream.delete(t, "d")
	upstream.put(t, "e", order("red", 1))
	upstream.put(t, "other", order("green", 3))
	for _, f := range followers {
		f.proxy.SetTarget(second.address)
		f.proxy.Heal()
	}
	all(3, map[string]string{"e": red1}, "c", "a", "b", "c", "d")

	upstream.put(t, "f", order("red", 1))
	all(3, map[string]string{"e": red1, "f": red1}, "c", "a", "b", "c", "d")
	for _, f := range followers {
		f.checkResumed(t)
	}
}

// newFollowers starts all clients that this machine has.
func newFollowers(t *testing.T, gateway *process) (followers []*follower) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(clients)) {
		if why := missing(name); why != "" {
			t.Logf("not tested with %s: %s", name, why)
			continue
		}
		followers = append(followers, newFollower(t, name, clients[name], gateway))
	}
	return followers
}

// checkResumed fails unless every connection but the first one resumed.
func (f *follower) checkResumed(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	modes := f.seen.Hellos
	if len(modes) < 3 || modes[0] != "snapshot" || slices.Contains(modes[1:], "snapshot") {
		t.Errorf("%s: its connections began with %q; want a snapshot, then at least two that resume", f.name, modes)
	}
}
