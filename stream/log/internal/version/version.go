package version

import (
	"sort"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/internal/signal"
	"github.com/watchtide/watchtide/stream/log/internal/index"
	"github.com/watchtide/watchtide/stream/log/internal/segment"
)

// TurnEntries is the most entries that a walk examines in one turn, give or take a
// segment, even if the reader wants few of them.
const TurnEntries = 4 << 10

// Version is one committed state of a log: immutable, published through one atomic
// pointer. A reader that holds a version sees exactly what was there when it was
// committed, for as long as it holds it, whatever the writer does.
type Version struct {
	Number     uint64 // rises with each version
	Generation uint64 // rises with each new revision order, and when everything is discarded
	Epoch      string // "" until primed

	Segments []*segment.Segment
	First    []uint64 // seq of the first entry of each segment
	Tail     int      // entries of the last segment that belong to the version

	Index *index.Table

	Seq      uint64 // of the newest entry: the cursor of a reader at the head
	Revision uint64 // the position of a reader at the head
	Swept    uint64 // as in the position of a reader at the head
	Run      Run    // the zero value where deletes have revisions

	Intact   uint64 // every entry with a greater seq is still there, superseded or not
	Readable uint64 // a state as of a smaller seq can no longer be built

	Origin        uint64 // from this revision on every change was received
	Horizon       uint64 // from this revision on every change is known: no position below it is resumed
	HorizonAge    time.Time
	OriginPending bool   // Origin is not known yet: it will be the revision of the next upsert
	Conflated     uint64 // a reader at a smaller revision may have values that the log never had; see stream.Conflater
	ConflatedSeq  uint64 // seq of the newest entry before which values may be missing
	Forgotten     uint64 // seq of the newest delete that was dropped: no cursor below it can continue

	Count      int            // resources
	Tombstones int            // deletes remembered
	Bytes      int64          // memory held
	Status     *stream.Status // static
	Committed  time.Time

	Changed *signal.Signal // sent when there is a newer version

	// In the log of a part of another log: the version of that log that it reflects, and the
	// revision up to which it may lack entries that were superseded.
	Of, OfGeneration uint64
	Since            uint64
}

// Conflate records that values may be missing before an entry of a commit. If the order of
// deletes is not known, a reader at the revision of the commit may not have the commit yet.
func (v *Version) Conflate(seq, revision uint64, unnumbered bool) {
	if unnumbered {
		revision++
	}
	v.Conflated, v.ConflatedSeq = revision, seq
}

// RaiseTo raises the horizon so that no reader resumes that may lack an entry. It returns
// the least revision from which one may.
func (v *Version) RaiseTo(e *segment.Entry, at time.Time) uint64 {
	horizon := after(e)
	v.Run.Horizon = max(v.Run.Horizon, horizon)
	if horizon > v.Horizon {
		v.Horizon, v.HorizonAge = horizon, at
	}
	return horizon
}

// Lack records that the log of a part lacks a delete that a reader before an entry may need.
// If the part is made again, the delete may have been there.
func (v *Version) Lack(e *segment.Entry, again bool) {
	horizon := v.RaiseTo(e, v.Committed)
	v.Conflated, v.ConflatedSeq = max(v.Conflated, horizon), max(v.ConflatedSeq, e.Seq)
	if again {
		v.Forgotten = max(v.Forgotten, e.Seq)
	}
}

// RaiseOrigin records that changes before a revision may be unknown.
func (v *Version) RaiseOrigin(origin uint64) {
	v.Origin = max(v.Origin, origin)
	if origin > v.Horizon {
		v.Horizon, v.HorizonAge = origin, v.Committed
	}
}

// CloseOutage is called after a commit, whose newest entry is last, and before which the
// version was at a revision. The first upsert after an outage tells where that ended.
func (v *Version) CloseOutage(before uint64, last *segment.Entry) {
	if !v.OriginPending || last == nil || v.Revision <= before {
		return
	}
	first := v.NewerThan(before)
	for first.Segment < len(v.Segments) {
		e := &v.Entries(first.Segment)[first.Entry]
		if !e.Is(segment.IsDelete) && e.Revision > before {
			v.OriginPending = false
			v.RaiseOrigin(e.Revision)
			return
		}
		first = v.Next(first)
	}
}

// Exact is the least revision since which nothing is missing: of no change after it is
// unknown what the resource was before, and no values were left out.
func (v *Version) Exact() uint64 {
	for i := len(v.Segments) - 1; i >= 0; i-- {
		entries := v.Entries(i)
		for j := len(entries) - 1; j >= 0; j-- {
			e := &entries[j]
			if e.Revision < v.Horizon {
				return v.Horizon
			}
			if v.doubtful(e) {
				return max(v.Horizon, after(e))
			}
		}
	}
	return v.Horizon
}

// doubtful reports whether a reader may have had the resource of an entry, before it, in a
// way that is not known here.
func (v *Version) doubtful(e *segment.Entry) bool {
	_, before, known := v.Before(e)
	unseen := e.Is(segment.IsDelete) && (before == nil || before.Is(segment.IsDelete))
	return !known || unseen || e.Is(segment.Conflated)
}

// after is the least revision of a reader that certainly does not lack an entry.
func after(e *segment.Entry) uint64 {
	if e.Is(segment.UnnumberedDelete) {
		return e.Revision + 1 // a reader at this very revision may or may not have seen it
	}
	return e.Revision
}

// Complete is the revision from which on the log has every change. The log of a part lacks
// the deletes of values that may be missing.
func (v *Version) Complete() uint64 {
	if v.OfGeneration == 0 {
		return v.Origin
	}
	return max(v.Origin, v.Conflated)
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

// HasReached reports whether the version of a part reflects a version of the other log, or a
// newer one.
func (v *Version) HasReached(of *Version) bool { return v.Primed() && v.Of >= of.Number }

func (v *Version) reflect(of *Version) {
	v.Revision, v.Swept, v.Committed, v.Status = of.Revision, of.Swept, of.Committed, of.Status
	v.Origin, v.OriginPending = of.Origin, of.OriginPending
	v.Run = Run{Name: of.Run.Name, Horizon: max(v.Run.Horizon, of.Run.Horizon)}
	if of.Horizon > v.Horizon {
		v.Horizon, v.HorizonAge = of.Horizon, of.HorizonAge
	}
}

// InSync is the status that a reader need not be told of: it is what it expects. Nobody
// writes to it.
var InSync = &stream.Status{State: stream.InSync}

// SameStatus reports whether a status tells readers nothing new after the other one.
func SameStatus(a, b *stream.Status) bool { return a.State == b.State && a.Reason == b.Reason }

// Primed reports whether there has been a complete snapshot.
func (v *Version) Primed() bool { return v.Epoch != "" }

// Entries returns the entries of segment i that belong to the version.
func (v *Version) Entries(i int) []segment.Entry {
	s := v.Segments[i]
	if i == len(v.Segments)-1 {
		return s.Entries[:v.Tail]
	}
	return s.Entries[:s.N]
}

// Place is an entry's place in a version: a segment and an index in it.
type Place struct{ Segment, Entry int }

// segmentOf returns the last segment that begins at or before seq; -1 if none does.
// It is the writer's hottest search, so it avoids unpredictable branches.
func (v *Version) segmentOf(seq uint64) int {
	first := v.First
	if len(first) == 0 || first[0] > seq {
		return -1
	}
	at := 0
	for n := len(first); n > 1; {
		half := n / 2
		if first[at+half] <= seq {
			at += half
		}
		n -= half
	}
	return at
}

// After returns the place of the first entry with a greater seq.
func (v *Version) After(seq uint64) Place {
	i := v.segmentOf(seq)
	if i < 0 {
		return Place{}
	}
	entries := v.Entries(i)
	j := sort.Search(len(entries), func(j int) bool { return entries[j].Seq > seq })
	return v.Normalize(Place{i, j})
}

// Normalize moves a place at the end of a segment to the start of the next.
func (v *Version) Normalize(p Place) Place {
	for p.Segment < len(v.Segments) && p.Entry >= len(v.Entries(p.Segment)) {
		p = Place{Segment: p.Segment + 1}
	}
	return p
}

// Next returns the place after p.
func (v *Version) Next(p Place) Place { return v.Normalize(Place{p.Segment, p.Entry + 1}) }

// Entry returns the entry at a place.
func (v *Version) Entry(p Place) *segment.Entry { return &v.Segments[p.Segment].Entries[p.Entry] }

// Find returns the entry with exactly this seq.
func (v *Version) Find(seq uint64) (*segment.Segment, *segment.Entry) {
	i := v.segmentOf(seq)
	if i < 0 {
		return nil, nil
	}
	entries := v.Entries(i)
	j := v.guess(i, len(entries), seq)
	// The guess is exact in a segment as written, and close in a compacted one: a
	// step or two cost less than a search, which would wait for memory each time.
	for range 8 {
		switch at := entries[j].Seq; {
		case at == seq:
			return v.Segments[i], &entries[j]
		case at < seq && j+1 < len(entries):
			j++
		case at > seq && j > 0:
			j--
		default:
			return nil, nil
		}
	}
	j = sort.Search(len(entries), func(j int) bool { return entries[j].Seq >= seq })
	if j == len(entries) || entries[j].Seq != seq {
		return nil, nil
	}
	return v.Segments[i], &entries[j]
}

// Before returns the previous entry of the key of e; nil if it had none. It is not known
// if it is no longer in the version.
func (v *Version) Before(e *segment.Entry) (s *segment.Segment, previous *segment.Entry, known bool) {
	switch e.Back {
	case 0:
		return nil, nil, true
	case segment.FarBack:
		return nil, nil, false
	}
	s, previous = v.Find(e.Seq - uint64(e.Back))
	return s, previous, previous != nil
}

// guess estimates where in segment i, of n entries, a seq is.
func (v *Version) guess(i, n int, seq uint64) int {
	end := v.Seq + 1
	if i+1 < len(v.First) {
		end = v.First[i+1]
	}
	offset, span := seq-v.First[i], end-v.First[i]
	if offset >= span {
		return n - 1
	}
	return int(offset * uint64(n) / span)
}

// NewerThan returns the place of the first entry that a reader at revision has not
// seen, or may not have seen: the first with a greater revision, or an unnumbered delete
// with an equal one. Unnumbered deletes are the last of their revision.
func (v *Version) NewerThan(revision uint64) Place {
	return v.Search(func(e *segment.Entry) bool {
		return e.Revision > revision || e.Revision == revision && e.Is(segment.UnnumberedDelete)
	})
}

// FromRevision returns the place of the first entry with this revision or a greater one.
func (v *Version) FromRevision(revision uint64) Place {
	return v.Search(func(e *segment.Entry) bool { return e.Revision >= revision })
}

// Search returns the place of the first entry for which found is true, as it is for
// all entries after it.
func (v *Version) Search(found func(e *segment.Entry) bool) Place {
	i := sort.Search(len(v.Segments), func(i int) bool {
		entries := v.Entries(i)
		return found(&entries[len(entries)-1])
	})
	if i == len(v.Segments) {
		return Place{Segment: i}
	}
	entries := v.Entries(i)
	return Place{i, sort.Search(len(entries), func(j int) bool { return found(&entries[j]) })}
}

// SeqBefore returns the cursor of a reader that continues at p.
func (v *Version) SeqBefore(p Place) uint64 {
	if p.Segment >= len(v.Segments) {
		return v.Seq
	}
	return v.Entries(p.Segment)[p.Entry].Seq - 1
}

// UsedBytes is how many bytes of frames are in the i-th segment.
func (v *Version) UsedBytes(i int) int {
	entries := v.Entries(i)
	last := &entries[len(entries)-1]
	return int(last.Off + last.Size)
}

// BytesFrom is how many bytes of frames are at p and beyond, at most limit.
func (v *Version) BytesFrom(p Place, limit int) int {
	n := 0
	for i := p.Segment; i < len(v.Segments) && n < limit; i++ {
		n += v.UsedBytes(i)
		if i == p.Segment {
			n -= int(v.Segments[i].Entries[p.Entry].Off)
		}
	}
	return min(n, limit)
}

// EntriesFrom is how many entries are at p and beyond.
func (v *Version) EntriesFrom(p Place) (n int) {
	for i := p.Segment; i < len(v.Segments); i++ {
		n += len(v.Entries(i))
	}
	return n - p.Entry
}

// Each calls f for every live resource as of seq, by rising revision, until f
// returns false.
func (v *Version) Each(seq uint64, f func(s *segment.Segment, e *segment.Entry) bool) {
	for i, s := range v.Segments {
		entries := v.Entries(i)
		for j := range entries {
			e := &entries[j]
			if e.Seq > seq {
				return
			}
			if !e.Is(segment.IsDelete) && e.Visible(seq) && !f(s, e) {
				return
			}
		}
	}
}

// Get finds the entry of a key as of the version; it may be a tombstone.
//
// The index belongs to the writer, which may be ahead of the version. So its result
// is checked, and if it refers to a later entry the log itself is read.
func (v *Version) Get(f *segment.Format, k segment.Key) (s *segment.Segment, e *segment.Entry) {
	ahead := false
	v.Index.Probe(k.Hash, func(seq uint64) bool {
		if seq > v.Seq {
			ahead = true
			return false
		}
		s, e = v.Find(seq)
		if e != nil && f.KeyEquals(s, e, k) && e.Visible(v.Seq) {
			return true
		}
		ahead = ahead || e == nil || f.KeyEquals(s, e, k)
		s, e = nil, nil
		return false
	})
	if e != nil || !ahead && !v.Index.DroppedAfter(k.Hash, v.Seq) {
		return s, e
	}
	return v.scan(f, k)
}

// scan finds the entry of a key by looking at all of them, newest first.
func (v *Version) scan(f *segment.Format, k segment.Key) (*segment.Segment, *segment.Entry) {
	for i := len(v.Segments) - 1; i >= 0; i-- {
		entries := v.Entries(i)
		for j := len(entries) - 1; j >= 0; j-- {
			e := &entries[j]
			if e.Hash == k.Hash && f.KeyEquals(v.Segments[i], e, k) && e.Visible(v.Seq) {
				return v.Segments[i], e
			}
		}
	}
	return nil, nil
}

// FindNear returns the entry at the place where Find begins to look.
func (v *Version) FindNear(seq uint64) (*segment.Segment, *segment.Entry) {
	i := v.segmentOf(seq)
	if i < 0 {
		return nil, nil
	}
	entries := v.Entries(i)
	return v.Segments[i], &entries[v.guess(i, len(entries), seq)]
}

// prefetched is how many keys are looked up at the same time.
const prefetched = 16

// Prefetch reads the memory that looking up n keys needs. The sum of the bytes that it returns
// has no meaning.
func (v *Version) Prefetch(x *index.Table, n int, key func(i int) string) (sum byte) {
	var hashes [prefetched]uint32
	for i := 0; i < n; i += len(hashes) {
		some := hashes[:min(len(hashes), n-i)]
		for j := range some {
			some[j] = segment.NewKey(key(i + j)).Hash
		}
		sum += v.prefetch(x, some)
	}
	return sum
}

func (v *Version) prefetch(x *index.Table, hashes []uint32) (sum byte) {
	var seqs [prefetched]uint64
	var segments [prefetched]*segment.Segment
	var entries [prefetched]*segment.Entry
	for i, hash := range hashes {
		seqs[i] = x.Guess(hash)
	}
	for i := range hashes {
		segments[i], entries[i] = v.FindNear(seqs[i])
	}
	for i := range hashes {
		if e := entries[i]; e != nil {
			sum += segments[i].Slab[e.Off+e.Size/2]
		}
	}
	return sum
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
		if e.Is(segment.EndsCommit) {
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
	swept := p.Swept()
	return swept >= v.Horizon && (!p.Partial() || swept <= v.Swept)
}

// SameOrder reports whether two versions, of the same log or of parts of it, are of the same
// revision order, so that the same change has the same seq in both.
func (v *Version) SameOrder(o *Version) bool {
	a, _ := v.root()
	b, _ := o.root()
	return a == b
}

// NotAfter reports whether v is not newer than a version of the same log, or of a part of it.
func (v *Version) NotAfter(o *Version) bool {
	_, a := v.root()
	_, b := o.root()
	return a <= b
}

// root returns the generation and the number of the version that v reflects.
func (v *Version) root() (generation, number uint64) {
	if v.OfGeneration == 0 {
		return v.Generation, v.Number
	}
	return v.OfGeneration, v.Of
}
