package log

import (
	"iter"
	"time"

	"github.com/watchtide/watchtide/internal/storage"
)

// Newest returns the entries up to a revision, newest first. Superseded ones are among them as
// far as they are still there: all are after Intact.
func (s Snapshot) Newest(upTo uint64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		s.v.EachNewest(upTo, func(in *storage.Segment, e *storage.Entry) bool { return yield(Entry{s.log, in, e}) })
	}
}

// Versions returns the entries of a key, newest first, as far back as each of them is known to
// be the one before.
func (s Snapshot) Versions(key string) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		in, e := s.v.Get(s.log.framing, storage.NewKey(key))
		for e != nil && yield(Entry{s.log, in, e}) {
			in, e, _ = s.v.Before(e)
		}
	}
}

// CommittedAt returns when an entry became visible, or up to a second before; see
// [storage.CommitSpacing]. It is not known of what a snapshot told, nor of old entries.
func (s Snapshot) CommittedAt(e Entry) (at time.Time, known bool) { return s.v.Times.Of(e.e.Seq) }

// Unnumbered reports whether e is a delete without a revision of its own.
func (e Entry) Unnumbered() bool { return e.e.Is(storage.UnnumberedDelete) }

// Place is the revision that orders e. It is that of its resource, unless e is Unnumbered.
func (e Entry) Place() uint64 { return e.e.Revision }

// Known is the least revision after which the log had every change of every resource, and every
// value that the upstream had. Superseded ones may have been dropped since.
func (s Snapshot) Known() uint64 { return max(s.v.Horizon, s.v.Conflated, s.v.Since) }

// Kept is the least revision after which the log still has all that it had.
func (s Snapshot) Kept() uint64 { return s.v.Kept() }

// Understood is the least revision after which no values were left out, and it is known what
// each change changed, unless it deletes what was never there.
func (s Snapshot) Understood() uint64 { return s.v.Understood() }

// CommittedBy returns when the watch was at a revision, or up to a second before.
func (s Snapshot) CommittedBy(revision uint64) (at time.Time, known bool) {
	return s.v.ReachedAt(revision)
}
