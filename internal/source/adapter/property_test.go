package adapter

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// world is an upstream with a history, listed page by page and watched at the
// same time.
type world struct {
	t       *rapid.T
	history []map[string]object // by revision; the state after it
	events  []event             // by revision; events[0] is unused
	keys    []string
}

// object is one incarnation of a key.
type object struct{ version, born uint64 }

// birth stands for what would be a unique id in practice.
type birth struct {
	key  string
	born uint64
}

type event struct {
	key     string
	object  object
	deleted bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, history: []map[string]object{{}}, events: make([]event, 1)}
	for i := range rapid.IntRange(1, 5).Draw(t, "keys") {
		w.keys = append(w.keys, string(rune('a'+i)))
	}
	return w
}

func (w *world) now() uint64              { return uint64(len(w.events) - 1) }
func (w *world) state() map[string]object { return w.history[w.now()] }

// change writes or deletes one key.
func (w *world) change() {
	state, revision := maps.Clone(w.state()), w.now()+1
	key := rapid.SampledFrom(w.keys).Draw(w.t, "key")
	o, lives := state[key]
	e := event{key: key, object: o}
	switch {
	case lives && rapid.Bool().Draw(w.t, "delete"):
		e.deleted = true
		delete(state, key)
	case lives:
		e.object.version = revision
	default:
		e.object = object{version: revision, born: revision}
	}
	if !e.deleted {
		state[key] = e.object
	}
	w.events, w.history = append(w.events, e), append(w.history, state)
}

// TestMergeIsExact: where everything has a revision of its own, the committed state
// is what the upstream held at the committed revision, however the pages, the watch
// and the writes interleave.
func TestMergeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := newWorld(t), NewMerge()
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			w.change()
		}
		told := w.now() // the watch begins here
		next, smallest, largest := 0, uint64(math.MaxUint64), uint64(0)
		for listing := true; listing || told < largest; {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				w.change()
			case 1:
				if told < w.now() {
					told++
					tellExact(m, w.events[told], told)
				}
			case 2:
				if next < len(w.keys) {
					if o, lives := w.state()[w.keys[next]]; lives {
						m.Listed(stream.Resource{Key: w.keys[next], Revision: o.version})
					}
					smallest, largest = min(smallest, w.now()), max(largest, w.now())
					next++
				} else if listing {
					listing = false
					if doubtful := m.Complete(smallest, true); len(doubtful) > 0 {
						t.Fatalf("in doubt: %v", doubtful)
					}
				}
			}
		}
		sink := &recordedSink{}
		if err := m.Commit(sink, "e", told); err != nil {
			t.Fatal(err)
		}
		if got, want := sink.String(), text(w.history[told]); got != want {
			t.Fatalf("at %d: got %q, want %q", told, got, want)
		}
	})
}

func tellExact(m *Merge, e event, revision uint64) {
	if e.deleted {
		m.Deleted(e.key, revision)
		return
	}
	m.Upserted(stream.Resource{Key: e.key, Revision: revision})
}

func text(state map[string]object) string {
	s := recordedSink{state: map[string]stream.Resource{}}
	for key, o := range state {
		s.state[key] = stream.Resource{Key: key, Revision: o.version}
	}
	return s.String()
}

// staleReader follows a world through a watch that begins in the past, reports
// deletions under the last version, and never reports how far it is, as Consul's
// does.
type staleReader struct {
	w *world
	m *Merge

	snapshot []stream.Resource // of the watch, not reported yet
	told     uint64            // then come the events after this
	sink     recordedSink
	at       map[string]uint64 // the point of history up to which a key was shown
	dead     map[birth]bool    // by key and birth
}

// TestMergeOfAStaleWatch: no key goes back, no deleted one comes back, and in the
// end the state is the upstream's.
func TestMergeOfAStaleWatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			w.change()
		}
		r := &staleReader{w: w, m: NewMerge(), at: map[string]uint64{}, dead: map[birth]bool{}}
		r.told = rapid.Uint64Range(0, w.now()).Draw(t, "watch begins at")
		for _, key := range slices.Sorted(maps.Keys(w.history[r.told])) {
			r.snapshot = append(r.snapshot, stream.Resource{Key: key, Revision: w.history[r.told][key].version})
		}
		r.run(rapid.IntRange(0, 12).Draw(t, "steps before the list"))
		r.list()
		r.run(rapid.IntRange(0, 12).Draw(t, "last steps"))
		for len(r.snapshot) > 0 || r.told < w.now() {
			r.tell()
		}
		if got, want := r.sink.String(), text(w.state()); got != want {
			t.Fatalf("in the end: got %q, want %q", got, want)
		}
	})
}

func (r *staleReader) run(steps int) {
	for range steps {
		if rapid.Bool().Draw(r.w.t, "write") {
			r.w.change()
		} else {
			r.tell()
		}
	}
}

// tell passes the next event of the watch to the Merge.
func (r *staleReader) tell() {
	if len(r.snapshot) > 0 {
		next := r.snapshot[0]
		r.snapshot = r.snapshot[1:]
		r.upserted(next)
		return
	}
	if r.told == r.w.now() {
		return
	}
	r.told++
	e := r.w.events[r.told]
	if !e.deleted {
		r.upserted(stream.Resource{Key: e.key, Revision: e.object.version})
		return
	}
	delete(r.dead, birth{e.key, e.object.born})
	if r.m.Deleted(e.key, e.object.version) {
		r.show(stream.Resource{Key: e.key, Revision: e.object.version}, true)
	}
}

func (r *staleReader) upserted(u stream.Resource) {
	if r.dead[r.birth(u)] {
		return
	}
	switch r.m.Upserted(u) {
	case Newer:
		r.show(u, false)
	case Doubtful:
		if r.settle(u) {
			r.show(u, false)
		}
	}
}

// settle reads what is in doubt.
func (r *staleReader) settle(u stream.Resource) bool {
	o, lives := r.w.state()[u.Key]
	if !lives || o.born != r.birth(u).born {
		r.dead[r.birth(u)] = true
		return false
	}
	r.m.Confirm(u)
	return true
}

func (r *staleReader) birth(u stream.Resource) birth {
	return birth{u.Key, r.w.history[u.Revision][u.Key].born}
}

// list reads a consistent list, while the watch and the writes continue.
func (r *staleReader) list() {
	shown, listed := r.w.state(), uint64(0)
	r.run(rapid.IntRange(0, 5).Draw(r.w.t, "beside the list"))
	for key, o := range shown {
		listed = max(listed, o.version)
		r.m.Listed(stream.Resource{Key: key, Revision: o.version})
	}
	for _, d := range r.m.Complete(listed, false) {
		r.settle(d)
	}
	_ = r.m.Commit(&r.sink, "e", listed)
	for key := range r.sink.state {
		r.at[key] = r.sink.state[key].Revision
	}
}

// show checks what subscribers see: a state that its key had, and not before the one that they saw.
func (r *staleReader) show(u stream.Resource, deleted bool) {
	if r.sink.state == nil {
		return
	}
	if deleted {
		_ = r.sink.Delete(u.Key, 0)
	} else {
		if u.Revision <= r.sink.state[u.Key].Revision {
			r.w.t.Fatalf("%s went from %d to %d", u.Key, r.sink.state[u.Key].Revision, u.Revision)
		}
		r.sink.state[u.Key] = u
	}
	for i := r.at[u.Key]; i <= r.w.now(); i++ {
		if o, lives := r.w.history[i][u.Key]; lives != deleted && (deleted || o.version == u.Revision) {
			r.at[u.Key] = i
			return
		}
	}
	r.w.t.Fatalf("%s: %s is older than what was shown", fmt.Sprint(u.Key, "@", u.Revision), map[bool]string{true: "deletion", false: "upsert"}[deleted])
}
