package log

import (
	"iter"
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// View is the state of a watch at one revision: immutable, and cheap to take and
// to hold. The zero value is not usable; see Log.View.
type View struct {
	log *Log
	v   *version
}

// View returns the newest committed state.
func (l *Log) View() View { return View{log: l, v: l.head.Load()} }

// Primed reports whether there has been a complete snapshot.
func (w View) Primed() bool { return w.v.primed() }

// Epoch is the name of the revision order; empty before the first snapshot.
func (w View) Epoch() string { return w.v.epoch }

// Revision is the upstream's revision up to which everything is in the view.
func (w View) Revision() uint64 { return w.v.revision }

// Count is the number of resources.
func (w View) Count() int { return w.v.count }

// Bytes is the memory that the log holds: frames, tables and index.
func (w View) Bytes() int64 { return w.v.bytes }

// Tombstones is how many deletes are remembered.
func (w View) Tombstones() int { return w.v.tombstones }

// Horizon is the oldest revision from which a reader can resume, and when the watch
// was there.
func (w View) Horizon() (revision uint64, at time.Time) { return w.v.horizon, w.v.horizonAge }

// Status is the freshness of the watch.
func (w View) Status() stream.Status { return w.v.status }

// Position is the place of a reader that has seen this view, narrowed to keys
// that begin with prefix.
func (w View) Position(prefix string) stream.Position {
	p := w.log.position(stream.NarrowEpoch(w.v.epoch, prefix), w.v.revision, w.v.revision, w.v.swept)
	return w.v.bind(p)
}

// Get returns one resource.
func (w View) Get(key string) (stream.Resource, bool) {
	k := newWireKey(key)
	s, e := w.v.get(&w.log.framing, k)
	if e == nil || e.is(isDelete) {
		return stream.Resource{}, false
	}
	return w.log.framing.event(w.log.watch, s, e).Resource, true
}

// get finds the entry of a key as of the version; it may be a tombstone.
//
// The index belongs to the writer, which may be ahead of the version. So its result
// is checked, and if it refers to a later entry the log itself is read.
func (v *version) get(f *framing, k wireKey) (s *segment, e *entry) {
	ahead := false
	v.index.probe(k.hash, func(seq uint64) bool {
		if seq > v.seq {
			ahead = true
			return false
		}
		s, e = v.find(seq)
		if e != nil && f.keyEquals(s, e, k) && e.visible(v.seq) {
			return true
		}
		ahead = ahead || e == nil || f.keyEquals(s, e, k)
		s, e = nil, nil
		return false
	})
	if e != nil || !ahead && !v.index.droppedAfter(k.hash, v.seq) {
		return s, e
	}
	return v.scan(f, k)
}

// scan finds the entry of a key by looking at all of them, newest first.
func (v *version) scan(f *framing, k wireKey) (*segment, *entry) {
	for i := len(v.segments) - 1; i >= 0; i-- {
		entries := v.entries(i)
		for j := len(entries) - 1; j >= 0; j-- {
			e := &entries[j]
			if e.hash == k.hash && f.keyEquals(v.segments[i], e, k) && e.visible(v.seq) {
				return v.segments[i], e
			}
		}
	}
	return nil, nil
}

// Resources returns the resources whose key begins with prefix, by rising
// revision.
func (w View) Resources(prefix string) iter.Seq[stream.Resource] {
	return func(yield func(stream.Resource) bool) {
		f := &w.log.framing
		w.v.each(w.v.seq, func(s *segment, e *entry) bool {
			if !f.hasPrefix(s, e, prefix) {
				return true
			}
			return yield(f.event(w.log.watch, s, e).Resource)
		})
	}
}

// hasPrefix reports whether the entry's key begins with prefix.
func (f *framing) hasPrefix(s *segment, e *entry, prefix string) bool {
	if prefix == "" {
		return true
	}
	if e.flags&(keyEscaped|keyBase64) == 0 {
		raw := f.rawKey(s, e)
		return len(raw) >= len(prefix) && string(raw[:len(prefix)]) == prefix
	}
	return strings.HasPrefix(f.key(s, e), prefix)
}
