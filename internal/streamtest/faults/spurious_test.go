package faults

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// The upstream's history: a at 1 and 2, b from 3 to 4, c at 5; then, in another
// order, nothing but a at 9.
func upstreamOfThree() *upstream {
	u := newUpstream(&Rig{})
	u.orders[0].epoch = "e"
	for _, w := range []struct {
		key, value string
		revision   uint64
	}{{"a", "1", 1}, {"a", "2", 2}, {"b", "3", 3}, {"b", "", 4}, {"c", "5", 5}} {
		c := log.Change{Resource: stream.Resource{Key: w.key, Revision: w.revision, Value: []byte(w.value)}, Deleted: w.value == ""}
		u.orders[0].add(w.revision, c)
	}
	u.orders = append(u.orders, &order{epoch: "f", state: streamtest.State{}})
	u.now().add(9, log.Change{Resource: stream.Resource{Key: "a", Revision: 9, Value: []byte("9")}})
	return u
}

func put(key, value string, revision uint64) stream.Event {
	return stream.Event{Type: stream.Upsert, Resource: stream.Resource{Key: key, Revision: revision, Value: []byte(value)}}
}

func gone(key string, revision uint64) stream.Event {
	return stream.Event{Type: stream.Delete, Resource: stream.Resource{Key: key, Revision: revision}}
}

func resetFor(reason stream.ResetReason) stream.Event {
	return stream.Event{Type: stream.Reset, Reason: string(reason)}
}

func end(revision uint64) stream.Event {
	return stream.Event{Type: stream.EndOfSnapshot, Revision: revision}
}

// id is an id of an epoch, with the state held there.
func id(epoch string, upserts, asOf uint64, held ...stream.Event) *streamtest.Mark {
	m := &streamtest.Mark{
		Position: stream.Position{Watch: "w", Epoch: epoch, Upserts: upserts, AsOf: asOf},
		State:    streamtest.State{},
	}
	for _, e := range held {
		m.State.Apply(e)
	}
	return m
}

func flush(m *streamtest.Mark, events ...stream.Event) streamtest.Flush {
	return streamtest.Flush{Events: events, Mark: m}
}

func TestSpurious(t *testing.T) {
	a, snapshot := put("a", "2", 2), resetFor(stream.ResetInitial)
	behind := func(f streamtest.Flush) streamtest.Flush { f.Horizon = 5; return f }
	tests := map[string]struct {
		from    *streamtest.Mark
		flushes []streamtest.Flush
		want    string // "": nothing is
	}{
		"a snapshot and what follows": {nil, []streamtest.Flush{
			flush(id("e", 2, 2), snapshot, a, end(2)), flush(id("e", 3, 3), put("b", "3", 3)), flush(id("e", 4, 4), gone("b", 4)),
		}, ""},
		"an upsert again": {nil, []streamtest.Flush{
			flush(id("e", 2, 2), snapshot, a, end(2)), flush(id("e", 3, 3), a),
		}, `"a" is sent again`},
		"an upsert again after an id": {id("e", 2, 2, a), []streamtest.Flush{
			flush(id("e", 2, 2), a, end(2)),
		}, `"a" is sent again`},
		"an upsert again after an id in the middle of a snapshot": {id("e", 1, 5, a), []streamtest.Flush{
			flush(id("e", 5, 5), a, put("c", "5", 5), end(5)),
		}, ""},
		"an upsert of a value that never existed": {nil, []streamtest.Flush{
			flush(id("e", 3, 3), snapshot, put("a", "3", 3), end(3)),
		}, `"a" never was 3 at revision 3`},
		"a delete again": {nil, []streamtest.Flush{
			flush(id("e", 4, 4), snapshot, a, end(4)), flush(id("e", 5, 5), gone("b", 4)),
		}, `"b" is deleted at revision 4, and was not there`},
		"a delete of a created and deleted key": {id("e", 2, 2, a), []streamtest.Flush{
			flush(id("e", 4, 4), gone("b", 4), end(4)),
		}, ""},
		"a delete of a created and deleted key, after an id of another order": {id("z", 466, 466, a), []streamtest.Flush{
			flush(id("e", 2, 5), resetFor(stream.ResetEpochChanged), a), flush(id("e", 5, 5), gone("b", 4), put("c", "5", 5), end(5)),
		}, ""},
		"a delete of an existing key": {nil, []streamtest.Flush{
			flush(id("e", 2, 2), snapshot, a, end(2)), flush(id("e", 3, 3), gone("a", 3)),
		}, `"a" is deleted, and upstream it was not`},
		"a reset without a cause": {nil, []streamtest.Flush{
			flush(id("e", 2, 2), snapshot, a, end(2)), flush(id("e", 2, 2), resetFor(stream.ResetExpired), a, end(2)),
		}, `reset (expired) within epoch "e"`},
		"a reset of an id that can be resumed": {id("e", 2, 2, a), []streamtest.Flush{
			flush(id("e", 2, 2), resetFor(stream.ResetExpired), a, end(2)),
		}, `reset (expired) within epoch "e"`},
		"a reset of an id that is too old": {id("e", 2, 2, a), []streamtest.Flush{
			behind(flush(id("e", 5, 5), resetFor(stream.ResetExpired), a, put("c", "5", 5), end(5))),
		}, ""},
		"a reset since the upstream lost its content": {id("e", 2, 2, a), []streamtest.Flush{
			flush(id("f", 9, 9), resetFor(stream.ResetEpochChanged), put("a", "9", 9), end(9)),
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &streamtest.Connection{Client: "c", Replica: replica, From: test.from, Flushes: test.flushes}
			found := newKnowledge(upstreamOfThree()).spurious(c)
			switch {
			case test.want == "" && len(found) > 0:
				t.Errorf("found %v, want nothing", found)
			case test.want != "" && (len(found) != 1 || !strings.Contains(found[0].Error(), test.want)):
				t.Errorf("found %v, want one: %s", found, test.want)
			}
		})
	}
}
