package storage

import (
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/signal"
	"github.com/watchtide/watchtide/stream"
)

// Version is one committed state of a log: immutable, published through one atomic
// pointer. A reader that holds a version sees exactly what was there when it was
// committed, for as long as it holds it, whatever the writer does.
type Version struct {
	Number     uint64 // rises with each version
	Generation uint64 // rises with each new revision order, and when everything is discarded
	Epoch      string // "" until primed
	Source     string // the name that the source has for the epoch

	Contents

	Seq               uint64 // of the newest entry: the cursor of a reader at the head
	Revision          uint64 // the position of a reader at the head
	DeletesCompleteTo uint64 // as in the position of a reader at the head
	Run               Run    // the zero value where deletes have revisions, and no other process goes on with the log

	Knowledge

	Digest    digest.Digest  // of the resources
	Status    *stream.Status // static
	Committed time.Time
	Age       time.Duration // of the changes then, by the upstream's clock; 0: not known
	Times     CommitTimes   // when entries became visible; in the log of a view of another log none are known

	Changed *signal.Signal // sent when there is a newer version
	Urgent  *signal.Signal // sent when there is a version of another status or generation

	Reflected

	Window Window
}

// Window is what a version of a window says of it besides its resources.
type Window struct {
	Is     bool   // the log is that of a window
	Total  int    // resources that it is a window of
	Before int    // resources that come before it
	Next   string // the cursor of its last resource; empty: none comes after it
	Told   uint64 // rises whenever readers are to be told of what has changed in that
}

// Contents is what of the log belongs to a version.
type Contents struct {
	Segments []*Segment
	First    []uint64 // seq of the first entry of each segment
	Tail     int      // entries of the last segment that belong to the version
	Index    *Index

	Intact     uint64 // every entry with a greater seq is still there, superseded or not
	Readable   uint64 // a state as of a smaller seq can no longer be built
	Tombstones int    // deletes remembered
	Bytes      int64  // memory held
}

// Knowledge is since when a log knows all changes, and so which positions can be resumed.
type Knowledge struct {
	Origin        uint64 // from this revision on every change was received
	Horizon       uint64 // from this revision on every change is known: no position below it is resumed
	HorizonAge    time.Time
	OriginPending bool   // Origin is not known yet: it will be the revision of the next upsert
	Conflated     uint64 // a reader at a smaller revision may have values that the log never had; see stream.SinkExtension
	ConflatedSeq  uint64 // seq of the newest entry before which values may be missing
	Forgotten     uint64 // seq of the newest delete that was dropped: no cursor below it can continue
}

// Reflected is, in the log of a view of another log, the version of that log that it reflects, and the
// revision up to which it may lack entries that were superseded.
type Reflected struct {
	Of, OfGeneration uint64
	Since            uint64

	OfSeq   uint64 // seq of that version, in a derived log
	Stalled bool   // a derived log does not follow it
}

// Reflect takes over what a part of a log has in common with it.
func (v *Version) Reflect(of *Version) {
	v.Of, v.OfGeneration = of.Number, of.Generation
	v.reflect(of)
	if of.ConflatedSeq > v.ConflatedSeq {
		// A reader may have a value that was left out, and that is of the part.
		v.Conflated, v.ConflatedSeq = of.Conflated, of.ConflatedSeq
		if of.Conflated > v.Horizon {
			v.Horizon, v.HorizonAge = of.Conflated, of.Committed
		}
	}
}

// ReflectDerived is like Reflect for a log that is derived from another one, whose seqs are not
// its own.
func (v *Version) ReflectDerived(of *Version) {
	v.Of, v.OfGeneration, v.OfSeq, v.Stalled = of.Number, of.Generation, of.Seq, false
	v.reflect(of)
}

// HasOwnRun reports whether the run of a window is its own, and not that of the other log: where deletes have no
// revision, each log of a window that is made may have been another one at a revision.
func (v *Version) HasOwnRun() bool {
	return v.Window.Is && strings.HasPrefix(v.Epoch, stream.UnnumberedEpoch)
}

// HasReached reports whether the version of a part reflects a version of the other log, or a
// newer one.
func (v *Version) HasReached(of *Version) bool { return v.Primed() && v.Of >= of.Number }

func (v *Version) reflect(of *Version) {
	v.Revision, v.DeletesCompleteTo, v.Committed, v.Status = of.Revision, of.DeletesCompleteTo, of.Committed, of.Status
	v.Origin, v.OriginPending, v.Age = of.Origin, of.OriginPending, of.Age
	run := Run{Name: of.Run.Name, Horizon: max(v.Run.Horizon, of.Run.Horizon), Former: of.Run.Former}
	if v.HasOwnRun() {
		run.Name, run.Former = v.Run.Name, nil
	}
	v.Run = run
	if of.Horizon > v.Horizon {
		v.Horizon, v.HorizonAge = of.Horizon, of.HorizonAge
	}
}

// InSync is the status that a reader need not be told of: it is what it expects. Nobody
// writes to it.
var InSync = &stream.Status{State: stream.InSync}

// SameStatus reports whether a status tells readers nothing new after the other one.
func SameStatus(a, b *stream.Status) bool { return a.State == b.State && a.Reason == b.Reason }

// Count is the number of resources.
func (v *Version) Count() int { return int(v.Digest.Count) }

// Primed reports whether there has been a complete snapshot.
func (v *Version) Primed() bool { return v.Epoch != "" }

// Entries returns the entries of segment i that belong to the version.
func (v *Version) Entries(i int) []Entry {
	s := v.Segments[i]
	if i == len(v.Segments)-1 {
		return s.Entries[:v.Tail]
	}
	return s.Entries[:s.N]
}

// UsedBytes is how many bytes of frames are in the i-th segment.
func (v *Version) UsedBytes(i int) int {
	entries := v.Entries(i)
	last := &entries[len(entries)-1]
	return int(last.Off + last.Size)
}

// Each calls f for every live resource as of seq, by rising revision, until f
// returns false.
func (v *Version) Each(seq uint64, f func(s *Segment, e *Entry) bool) {
	for i, s := range v.Segments {
		entries := v.Entries(i)
		for j := range entries {
			e := &entries[j]
			if e.Seq > seq {
				return
			}
			if !e.Is(IsDelete) && e.Visible(seq) && !f(s, e) {
				return
			}
		}
	}
}

// Replayable reports whether a reader at seq, whose next entry is at from, can be
// given all entries as they are: they are all there, and they have fewer bytes than
// limit or are one transaction.
func (v *Version) Replayable(seq uint64, from Place, limit int) bool {
	if seq < v.Intact {
		return false
	}
	return v.BytesFrom(from, limit) < limit || v.oneCommit(from)
}

// oneCommit reports whether everything from p on is a single transaction.
func (v *Version) oneCommit(p Place) bool {
	for p.Segment < len(v.Segments) {
		e := v.Entry(p)
		p = v.Next(p)
		if e.Is(EndsCommit) {
			return p.Segment >= len(v.Segments)
		}
	}
	return true
}

// Resumable reports whether the changes after a position are known, once the version
// has reached it.
func (v *Version) Resumable(r stream.Position, epoch string) bool {
	return r.Epoch == epoch && (r.AsOf > v.Revision || v.CanResume(r))
}

// CanResume reports whether everything newer than a position is known. Inside a snapshot
// or a catch-up nothing may be delivered that the replica that issued the position
// already knew to be gone.
func (v *Version) CanResume(p stream.Position) bool {
	if v.Issued(p) {
		return true
	}
	deletesTo := p.DeletesCompleteTo()
	return deletesTo >= v.Horizon && (!p.Partial() || deletesTo <= v.DeletesCompleteTo)
}

// EachExcept calls f for every live resource, by rising revision, except those with the seqs
// that are present, which it sorts.
func (v *Version) EachExcept(present []uint64, f func(s *Segment, e *Entry)) {
	slices.Sort(present)
	v.Each(v.Seq, func(s *Segment, e *Entry) bool {
		if len(present) > 0 && present[0] == e.Seq {
			present = present[1:]
			return true
		}
		f(s, e)
		return true
	})
}

// Packed returns a segment of so many bytes with the newest entry of each key.
func (v *Version) Packed(bytes int) *Segment {
	packed := NewSegment(v.Number, bytes, v.Count()+v.Tombstones)
	for i, s := range v.Segments {
		entries := v.Entries(i)
		for j := range entries {
			if entries[j].Superseded.Load() == 0 {
				packed.AppendCopy(s, &entries[j])
			}
		}
	}
	return packed
}

// EachNewest calls f for each entry up to a revision, superseded or not, newest first, until f
// returns false.
func (v *Version) EachNewest(upTo uint64, f func(s *Segment, e *Entry) bool) {
	end := v.Search(func(e *Entry) bool { return e.Revision > upTo })
	for i := min(end.Segment, len(v.Segments)-1); i >= 0; i-- {
		entries := v.Entries(i)
		if i == end.Segment {
			entries = entries[:end.Entry]
		}
		for j := len(entries) - 1; j >= 0; j-- {
			if !f(v.Segments[i], &entries[j]) {
				return
			}
		}
	}
}

// Kept is the least revision after which the log still has all that it had, superseded or not.
func (v *Version) Kept() uint64 { return v.revisionOf(v.Intact) }

// Understood is the least revision after which no values were left out, and it is known what
// each change changed, unless it deletes what was never there.
func (v *Version) Understood() uint64 {
	return max(v.Horizon, v.Conflated, v.Since, v.revisionOf(v.Readable))
}

// revisionOf returns the revision of an entry or, if it is gone, of the next one.
func (v *Version) revisionOf(seq uint64) uint64 {
	if seq == 0 {
		return 0 // it began empty, and nothing was dropped
	}
	if _, e := v.Find(seq); e != nil {
		return e.Revision
	}
	first := v.After(seq)
	if first.Segment == len(v.Segments) {
		return v.Revision
	}
	return v.Entry(first).Revision
}

// ReachedAt returns when the watch was at a revision, or up to a second before: of what came
// with a snapshot, when that was, if it is the horizon.
func (v *Version) ReachedAt(revision uint64) (at time.Time, known bool) {
	if revision == v.Horizon {
		return v.HorizonAge, !v.HorizonAge.IsZero()
	}
	first := v.FromRevision(revision)
	if first.Segment == len(v.Segments) {
		return v.Committed, revision == v.Revision
	}
	return v.Times.Of(v.Entry(first).Seq)
}
