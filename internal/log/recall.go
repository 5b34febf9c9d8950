package log

import (
	"fmt"
	"iter"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Record is what a log knows beside its entries. With the entries it makes another log, which can
// go on where this one ended.
type Record struct {
	Epoch             string    `json:"epoch"`
	SourceEpoch       string    `json:"source_epoch,omitempty"` // the name that the source has for it; "": it is not known
	Revision          uint64    `json:"revision"`
	DeletesCompleteTo uint64    `json:"deletes_complete_to,omitempty"`
	Committed         time.Time `json:"committed"`
	StaleSince        time.Time `json:"stale_since,omitzero"` // since when it was not in sync; zero: it was
	Digest            string    `json:"digest"`               // of the resources; "": it is not known

	Origin        uint64    `json:"origin"`
	OriginPending bool      `json:"origin_pending,omitempty"`
	Horizon       uint64    `json:"horizon"`
	HorizonAge    time.Time `json:"horizon_age"`

	Runs       []storage.FormerRun `json:"runs,omitempty"` // that ended with the log, or before
	RunHorizon uint64              `json:"run_horizon,omitempty"`
}

// Record returns what the snapshot knows beside its entries.
func (s Snapshot) Record() Record {
	v := s.v
	r := Record{
		Epoch: v.Epoch, SourceEpoch: v.Source, Revision: v.Revision, DeletesCompleteTo: v.DeletesCompleteTo, Committed: v.Committed, Digest: v.Digest.String(),
		Origin: v.Origin, OriginPending: v.OriginPending, Horizon: v.Horizon, HorizonAge: v.HorizonAge,
		Runs: v.Run.Ended(v.Revision), RunHorizon: v.Run.Horizon,
	}
	if v.Status.State != stream.InSync {
		r.StaleSince = v.Status.Since
	}
	return r
}

// Confirmed returns when the log was in sync for the last time, as far as the record knows.
func (r *Record) Confirmed() time.Time {
	if !r.StaleSince.IsZero() && r.StaleSince.Before(r.Committed) {
		return r.StaleSince
	}
	return r.Committed
}

// Recorded is an entry of another log that counted when that ended.
type Recorded struct {
	Seq      uint64
	Place    uint64 // see Entry.Place
	Resource stream.Resource
	// The following are of a delete.
	Deleted, Unnumbered bool
	At                  time.Time
}

// Lost makes the record one of a log whose end is not known. Readers may have more than it has, as those of
// another replica may, so the names of its runs prove nothing.
func (r *Record) Lost() { r.Runs, r.RunHorizon = nil, 0 }

// RecordedEntries are the entries of a record, by rising seq.
type RecordedEntries struct {
	Count int
	Bytes int64 // of keys and values
	All   iter.Seq[Recorded]
}

// Recall makes the log, which must be new, one that goes on from a record and its entries. What the
// entries superseded is not known. If the log does not have the digest of the record then, where that is
// known, or another error occurs, it is as it was.
func (w *Writer) Recall(r Record, entries RecordedEntries) error {
	if r.Epoch == "" || stream.CanonicalEpoch(r.Epoch) != r.Epoch {
		return fmt.Errorf("it has the epoch %.40q", r.Epoch)
	}
	if err := w.account.Replace(w.recallCost(entries)); err != nil {
		return err
	}
	w.restart(r.Epoch)
	w.index, w.indexed = storage.NewIndex(entries.Count), w.next.Number
	last, err := w.recallEntries(r, entries.All)
	if err == nil && r.Digest != "" && w.next.Digest.String() != r.Digest {
		err = fmt.Errorf("it has the digest %s, want %s", w.next.Digest, r.Digest)
	}
	if err != nil {
		w.restart("")
		w.account.SetLog(w.holds(), 0)
		return err
	}
	w.recallKnowledge(r, last)
	w.publish()
	return nil
}

// recallCost is about how many bytes the log will take: as if all entries had the same size.
func (w *Writer) recallCost(of RecordedEntries) int64 {
	p := storage.Packing{}
	for range of.Count {
		p.Add(w.framing.Overhead() + 1 + int(of.Bytes)/of.Count)
	}
	return p.Bytes
}

// recallEntries appends the entries. It returns the last one; nil: there is none.
func (w *Writer) recallEntries(r Record, all iter.Seq[Recorded]) (last *storage.Entry, err error) {
	var place uint64
	for e := range all {
		if e.Seq <= w.next.Seq || e.Place < place || e.Place > r.Revision {
			return nil, fmt.Errorf("key %.80q has the place %d at %d, after %d at %d: the newest is %d", e.Resource.Key, e.Seq, e.Place, w.next.Seq, place, r.Revision)
		}
		place = e.Place
		last = w.recallEntry(&e)
	}
	return last, nil
}

func (w *Writer) recallEntry(r *Recorded) *storage.Entry {
	k := storage.NewKey(r.Resource.Key)
	e, frame := w.appendEntry(r.Seq, k, w.framing.Size(&r.Resource, r.Deleted, k.Key))
	w.framing.Append(frame, &r.Resource, r.Deleted, k.Key)
	e.Revision = r.Place
	e.Flags |= storage.Conflated // what it superseded is not known
	if r.Deleted {
		if r.Unnumbered {
			e.Flags |= storage.UnnumberedDelete
		}
		w.remember(e, r.At)
		return e
	}
	if r.Resource.Encoding != "" {
		e.Flags |= storage.ValueBase64
	}
	e.Content = digest.Of(r.Resource.Key, r.Resource.Value, r.Resource.Encoding)
	w.next.Digest = w.next.Digest.Add(e.Content)
	return e
}

// recallKnowledge takes over what a record says beside the entries.
func (w *Writer) recallKnowledge(r Record, last *storage.Entry) {
	v := w.next
	v.Source, v.Revision, v.Committed = r.SourceEpoch, r.Revision, r.Committed
	v.Origin, v.OriginPending, v.Horizon, v.HorizonAge = r.Origin, r.OriginPending, r.Horizon, r.HorizonAge
	if v.Run.Name != 0 {
		v.Run = v.Run.After(r.Runs)
		v.Run.Horizon = r.RunHorizon
	}
	if last != nil {
		last.Flags |= storage.EndsCommit
		v.Conflate(last.Seq, r.Revision, w.unnumbered)
		v.Times = v.Times.Add(1, r.Committed, false, storage.CommitSpacing(w.history.MaxAge))
	}
	v.Intact, v.Readable = v.Seq, v.Seq
	w.forgetDeletes(time.Now())
	w.deletesCompleteTo(r.DeletesCompleteTo)
	w.overlaps = true
}
