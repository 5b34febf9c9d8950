package log

import (
	"iter"
	"time"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Snapshot is the complete state of a watch at one revision: immutable, and cheap to
// take and to hold. The zero value is not usable; see Log.Snapshot.
type Snapshot struct {
	log *Log
	v   *storage.Version
}

// Snapshot returns the newest committed state.
func (l *Log) Snapshot() Snapshot { return Snapshot{log: l, v: l.newest()} }

// Primed reports whether there has been a complete snapshot.
func (s Snapshot) Primed() bool { return s.v.Primed() }

// Epoch is the name of the revision order; empty before the first snapshot.
func (s Snapshot) Epoch() string { return s.v.Epoch }

// SourceEpoch is the name that the source has for the epoch.
func (s Snapshot) SourceEpoch() string { return s.v.Source }

// Revision is the upstream's revision up to which everything is in the snapshot.
func (s Snapshot) Revision() uint64 { return s.v.Revision }

// Count is the number of resources.
func (s Snapshot) Count() int { return s.v.Count() }

// Bytes is the memory that the log holds: frames, tables and index.
func (s Snapshot) Bytes() int64 { return s.v.Bytes }

// Tombstones is how many deletes are remembered.
func (s Snapshot) Tombstones() int { return s.v.Tombstones }

// Horizon is the oldest revision from which a reader can resume, and when the watch was there.
func (s Snapshot) Horizon() (revision uint64, at time.Time) { return s.v.Horizon, s.v.HorizonAge }

// Since is the revision up to which superseded entries of a part of a log may be missing, although
// later ones do not tell; 0 for a log that is no part.
func (s Snapshot) Since() uint64 { return s.v.Since }

// Status is the freshness of the watch.
func (s Snapshot) Status() stream.Status { return *s.v.Status }

// WithStatus returns the state with another freshness, for a part of the log that is behind it.
func (s Snapshot) WithStatus(status stream.Status) Snapshot {
	v := *s.v
	v.Status = &status
	return Snapshot{s.log, &v}
}

// Position is the place of a reader that has seen this snapshot.
func (s Snapshot) Position() stream.Position {
	p := s.log.position(s.v.Epoch, s.v.Revision, s.v.Revision, s.v.DeletesCompleteTo)
	return s.v.WithRun(p)
}

// Tag names the state: two snapshots of a watch have the same tag exactly if they have the same
// resources, whichever replicas took them. So it reveals no changes that a part of a log does
// not have. Where deletes have no revision, a tag is valid at one replica only.
func (s Snapshot) Tag() string { return s.log.listings.Tag(s.v) }

// FitsPage reports whether one page of up to size resources surely has all of them.
func (s Snapshot) FitsPage(size int) bool { return s.log.listings.Fits(s.v, size) }

// Get returns one resource.
func (s Snapshot) Get(key string) (stream.Resource, bool) {
	k := storage.NewKey(key)
	seg, e := s.v.Get(s.log.framing, k)
	if e == nil || e.Is(storage.IsDelete) {
		return stream.Resource{}, false
	}
	return s.log.framing.Event(seg, e).Resource, true
}

// Resources returns the resources by rising revision.
func (s Snapshot) Resources() iter.Seq[stream.Resource] {
	return func(yield func(stream.Resource) bool) {
		f := s.log.framing
		s.v.Each(s.v.Seq, func(seg *storage.Segment, e *storage.Entry) bool {
			return yield(f.Event(seg, e).Resource)
		})
	}
}

// Earlier returns what the log knows of the time before the snapshot: the deletes by rising revision.
func (s Snapshot) Earlier() *Earlier {
	f := s.log.framing
	known := &Earlier{Deletes: make([]stream.Resource, 0, s.v.Tombstones), After: s.v.Horizon}
	for i, seg := range s.v.Segments {
		entries := s.v.Entries(i)
		for j := range entries {
			if e := &entries[j]; e.Is(storage.IsDelete) && e.Visible(s.v.Seq) {
				known.Deletes = append(known.Deletes, f.Event(seg, e).Resource)
			}
		}
	}
	return known
}
