package log

import (
	"iter"
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Snapshot is the complete state of a watch at one revision: immutable, and cheap to
// take and to hold. The zero value is not usable; see Log.Snapshot.
type Snapshot struct {
	log *Log
	v   *version
}

// Snapshot returns the newest committed state.
func (l *Log) Snapshot() Snapshot { return Snapshot{log: l, v: l.head.Load()} }

// Primed reports whether there has been a complete snapshot.
func (s Snapshot) Primed() bool { return s.v.primed() }

// Epoch is the name of the revision order; empty before the first snapshot.
func (s Snapshot) Epoch() string { return s.v.epoch }

// Revision is the upstream's revision up to which everything is in the snapshot.
func (s Snapshot) Revision() uint64 { return s.v.revision }

// Count is the number of resources.
func (s Snapshot) Count() int { return s.v.count }

// Bytes is the memory that the log holds: frames, tables and index.
func (s Snapshot) Bytes() int64 { return s.v.bytes }

// Tombstones is how many deletes are remembered.
func (s Snapshot) Tombstones() int { return s.v.tombstones }

// Horizon is the oldest revision from which a reader can resume, and when the watch
// was there.
func (s Snapshot) Horizon() (revision uint64, at time.Time) { return s.v.horizon, s.v.horizonAge }

// Status is the freshness of the watch.
func (s Snapshot) Status() stream.Status { return s.v.status }

// Position is the place of a reader that has seen this snapshot, narrowed to keys
// that begin with prefix.
func (s Snapshot) Position(prefix string) stream.Position {
	p := s.log.position(stream.NarrowEpoch(s.v.epoch, prefix), s.v.revision, s.v.revision, s.v.swept)
	return s.v.withRun(p)
}

// Get returns one resource.
func (s Snapshot) Get(key string) (stream.Resource, bool) {
	k := newWireKey(key)
	seg, e := s.v.get(&s.log.framing, k)
	if e == nil || e.is(isDelete) {
		return stream.Resource{}, false
	}
	return s.log.framing.event(s.log.watch, seg, e).Resource, true
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
func (s Snapshot) Resources(prefix string) iter.Seq[stream.Resource] {
	return func(yield func(stream.Resource) bool) {
		f := &s.log.framing
		s.v.each(s.v.seq, func(seg *segment, e *entry) bool {
			if !f.hasPrefix(seg, e, prefix) {
				return true
			}
			return yield(f.event(s.log.watch, seg, e).Resource)
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
