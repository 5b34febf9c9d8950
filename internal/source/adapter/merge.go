package adapter

import (
	"unsafe"

	"github.com/watchtide/watchtide/stream"
)

// Merge is the state of a collection that is read in two ways at once: by a list, page
// by page, and by a watch that runs freely beside it. For each key the newest
// revision counts, whichever of the two reported it first. A deletion that overtakes
// the list is remembered until the list is complete. What the list does not show is
// swept. So the list may be read at any pace and its pages at different revisions:
// no revision has to stay readable until the end.
//
// A source
//
//  1. opens the watch and hands everything it reports to Upserted and Deleted,
//  2. reads the list, no earlier than that, and hands it to Listed,
//  3. calls Complete, and settles what that leaves in doubt,
//  4. calls Commit, once the watch has reported everything up to the revision at which
//     the state is to be complete,
//  5. and may go on asking Upserted and Deleted what in the watch is news.
//
// A watch may begin in the past, for instance if a server answers it from a cache.
// It then reports resources that were deleted long ago, under the revision that they
// had. Those up to the newest revision that the list shows are known to be gone. One
// beyond that may have been created after the list or deleted just before it: it is
// Doubtful, until the watch is seen to have passed the list.
//
// A Merge belongs to one goroutine.
type Merge struct {
	entries map[string]*entry
	slabs   [][]entry   // storage of the entries, in order of arrival
	listing bool        // the list is still incomplete
	live    bool        // committed: only keys and revisions are kept
	floor   uint64      // unknown keys up to here were deleted
	exact   bool        // the list names the revision that it shows
	passed  bool        // the watch has passed the list
	past    *past       // nil: Commit passes no deletes on
	sink    stream.Sink // is told how much is held; may be nil
	held    int         // bytes
}

// past is the deletes that a Merge passes on with its first state.
type past struct {
	deletes  []stream.Resource
	complete bool   // after the following revision; otherwise they are not passed on
	after    uint64 // see stream.SinkExtension, DeletesCompleteAfter
}

// entry is the newest known state of a key.
type entry struct {
	resource stream.Resource // without Value and Encoding once committed
	deleted  bool            // only while a list is being read
	swept    bool            // it is no longer in the map
	listed   bool            // the list showed the key
	watched  bool            // the watch changed it
}

// Verdict is the judgment on an upsert of the watch.
type Verdict uint8

const (
	// Older: the list or the watch has already reported this or something newer.
	Older Verdict = iota
	// Newer: it is the newest state of its key.
	Newer
	// Doubtful: it is not taken. Read the resource. If it exists, and is the one
	// that the watch reported (not another one of the same name), it is newer than
	// the list, and Confirm takes it. Otherwise it is dead: pass on nothing more
	// about it from the watch until the watch has reported its deletion, or it would
	// come back for a moment.
	Doubtful
)

// NewMerge returns a Merge whose list has begun.
func NewMerge() *Merge {
	return &Merge{entries: map[string]*entry{}, listing: true}
}

// slabEntries is how many entries are allocated at a time.
const slabEntries = 512

// entry returns the entry of a key, creating one if the key is not known.
func (s *Merge) entry(key string) (e *entry, known bool) {
	if e, known = s.entries[key]; known {
		return e, true
	}
	s.hold(entryCost + len(key))
	last := len(s.slabs) - 1
	switch {
	case s.live:
		e = new(entry) // it must not keep others of a slab alive
	case last < 0 || len(s.slabs[last]) == slabEntries:
		s.slabs = append(s.slabs, make([]entry, 0, slabEntries))
		last++
		fallthrough
	default:
		s.slabs[last] = append(s.slabs[last], entry{})
		e = &s.slabs[last][len(s.slabs[last])-1]
	}
	s.entries[key] = e
	return e, false
}

func (s *Merge) sweep(key string, e *entry) {
	e.swept = true
	delete(s.entries, key)
	s.hold(-entryCost - len(key) - len(e.resource.Value))
}

// Listed takes a resource of the list. It reports whether that is news.
func (s *Merge) Listed(r stream.Resource) bool {
	e, known := s.entry(r.Key)
	news := !known || e.resource.Revision < r.Revision
	if news {
		s.keep(e, r)
		e.deleted = false
	}
	e.listed = true
	return news
}

// Upserted takes a resource of the watch.
func (s *Merge) Upserted(r stream.Resource) Verdict {
	e, known := s.entries[r.Key]
	switch {
	case known && r.Revision <= e.resource.Revision:
		return Older
	case known && !e.deleted:
		s.seen(e)
	case s.listing: // Complete will judge
	case r.Revision <= s.floor:
		return Older
	case !s.exact && !s.passed:
		return Doubtful
	}
	e, _ = s.entry(r.Key)
	s.keep(e, r)
	e.deleted, e.watched = false, true
	return Newer
}

// Deleted takes a deletion of the watch, with the revision of the deletion or, where
// deletes have none of their own, the last revision of the resource. It reports
// whether this removes a resource.
func (s *Merge) Deleted(key string, revision uint64) bool {
	if s.past != nil {
		s.gone(stream.Resource{Key: key, Revision: revision})
	}
	e, known := s.entries[key]
	if known && revision < e.resource.Revision {
		return false
	}
	if s.listing {
		e, known = s.entry(key)
		was := known && !e.deleted
		s.keep(e, stream.Resource{Key: key, Revision: revision})
		e.watched, e.deleted = true, true
		return was
	}
	if !known {
		return false
	}
	s.seen(e)
	s.sweep(key, e)
	if !s.exact {
		// What follows in the watch was created later, so it is newer than this
		// resource: an upsert up to this revision is a repetition.
		s.floor = max(s.floor, revision)
	}
	return true
}

// seen is called for a change that is newer than what the list showed of its key.
func (s *Merge) seen(e *entry) {
	s.passed = s.passed || !s.listing && e.listed
}

// Complete ends the list, which shows everything up to revision listed. If the pages
// name the revision at which they were read, listed is the smallest of these and
// exact is true. Otherwise it is the newest revision of a resource of the list, and
// exact is false.
//
// It returns the resources that are in doubt, like an upsert with that verdict. They are not part of
// the state, unless they are confirmed.
func (s *Merge) Complete(listed uint64, exact bool) (doubtful []stream.Resource) {
	s.listing, s.passed, s.exact = false, false, exact
	s.floor = max(s.floor, listed)
	for key, e := range s.entries {
		switch {
		case e.deleted:
		case e.listed:
			continue
		case !e.watched || e.resource.Revision <= listed:
		case exact:
			continue
		default:
			doubtful = append(doubtful, e.resource)
		}
		s.sweep(key, e)
	}
	return doubtful
}

// Confirm takes a resource that was in doubt, as the watch reported it, after it was
// read. It was created after the list, which shows that the watch has passed the
// list.
func (s *Merge) Confirm(r stream.Resource) {
	s.passed = true
	e, _ := s.entry(r.Key)
	s.keep(e, r)
	e.deleted, e.listed, e.watched = false, false, true
}

// Remember makes the Merge keep the deletes that the watch reports from now on, each with a
// revision of its own, for Commit to pass on if there are those from before the watch as well.
func (s *Merge) Remember() { s.past = &past{} }

// Before takes the deletes from before the watch began, of which none is missing after a revision.
func (s *Merge) Before(deletes []stream.Resource, after uint64) {
	s.past.complete, s.past.after = true, after
	for _, r := range deletes {
		s.gone(r)
	}
}

// gone keeps a delete for Commit.
func (s *Merge) gone(r stream.Resource) {
	s.hold(goneCost + len(r.Key))
	s.past.deletes = append(s.past.deletes, r)
}

// goneCost is what a delete takes in addition to its key, in a slice that is copied when it grows.
const goneCost = 2 * int(unsafe.Sizeof(stream.Resource{}))

// pass passes on the deletes.
func (p *past) pass(sink stream.Sink) error {
	if p == nil || !p.complete {
		return nil
	}
	for _, r := range p.deletes {
		if err := sink.Delete(r.Key, r.Revision); err != nil {
			return err
		}
	}
	sink.DeletesCompleteAfter(p.after)
	return nil
}

// Commit sends the state to sink, as a snapshot of the revision order epoch that is
// complete up to revision. Values are no longer kept.
func (s *Merge) Commit(sink stream.Sink, epoch string, revision uint64) error {
	if err := sink.Reset(epoch); err != nil {
		return err
	}
	if err := s.past.pass(sink); err != nil {
		return err
	}
	s.past = nil
	s.live = true
	for _, slab := range s.slabs {
		if err := s.pour(slab, sink); err != nil {
			return err
		}
	}
	s.slabs = nil
	return sink.Commit(revision)
}

func (s *Merge) pour(slab []entry, sink stream.Sink) error {
	for i := range slab {
		e := &slab[i]
		if e.swept || e.deleted {
			continue
		}
		if err := sink.Upsert(e.resource); err != nil {
			return err
		}
		s.keep(e, e.resource)
	}
	return nil
}

// Len is how many resources there are.
func (s *Merge) Len() int { return len(s.entries) }

// keep stores a resource, or what is needed of it.
func (s *Merge) keep(e *entry, r stream.Resource) {
	if s.live {
		r = stream.Resource{Key: r.Key, Revision: r.Revision}
	}
	s.hold(len(r.Value) - len(e.resource.Value))
	e.resource = r
}

// CountAt makes the Merge report to the sink of a watch how much is held. Call it
// before anything is. See stream.SinkExtension.
func (s *Merge) CountAt(sink stream.Sink) { s.sink = sink }

// Close tells the sink that nothing is held any longer. The Merge must not be used
// afterwards.
func (s *Merge) Close() {
	s.hold(-s.held)
	s.entries, s.slabs = nil, nil
}

// hold counts bytes held.
func (s *Merge) hold(bytes int) {
	s.held += bytes
	if s.sink != nil && bytes != 0 {
		s.sink.Charge(int64(bytes))
	}
}

// entryCost is what an entry takes in addition to its key and its value: itself, and
// a place in a map.
const entryCost = int(unsafe.Sizeof(entry{})) + 64
