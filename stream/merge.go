package stream

import "unsafe"

// Merge makes one state of a collection that is read in two ways at once: by a list,
// page by page, and by a watch that runs freely beside it. For each key the newest
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
//  5. and may go on asking Upserted and Deleted what in the watch is news; Begin
//     starts another list, beside the same watch.
//
// A watch may begin in the past, for instance if a server answers it from a cache.
// It then reports resources that were deleted long ago, under the revision that they
// had. Those up to the newest revision that the list shows are known to be gone. One
// beyond that may have been created after the list or deleted just before it: it is
// Doubtful, until the watch is seen to have passed the list.
//
// A Merge belongs to one goroutine.
type Merge struct {
	entries map[string]*mergeEntry
	slabs   [][]mergeEntry // storage of the entries, in order of arrival
	pass    uint32         // of the list; the first is 1
	listing bool           // the list of this pass is still incomplete
	live    bool           // committed: only keys and revisions are kept
	floor   uint64         // unknown keys up to here were deleted
	exact   bool           // the lists name the revision that they show
	passed  bool           // the watch has passed the list
	sink    Sink           // is told how much is held; may be nil
	held    int            // bytes
}

// mergeEntry is the newest known state of a key.
type mergeEntry struct {
	resource Resource // without Value and Encoding once committed
	deleted  bool     // only while a list is being read
	swept    bool     // it is no longer in the map
	listed   uint32   // the pass in which the list showed the key
	watched  uint32   // the pass in which the watch changed it
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

// NewMerge returns a Merge whose first list has begun.
func NewMerge() *Merge {
	return &Merge{entries: map[string]*mergeEntry{}, pass: 1, listing: true}
}

// mergeSlab is how many entries are allocated at a time.
const mergeSlab = 512

// entry returns the entry of a key, creating one if the key is not known.
func (m *Merge) entry(key string) (e *mergeEntry, known bool) {
	if e, known = m.entries[key]; known {
		return e, true
	}
	m.hold(mergeCost + len(key))
	last := len(m.slabs) - 1
	switch {
	case m.live:
		e = new(mergeEntry) // it must not keep others of a slab alive
	case last < 0 || len(m.slabs[last]) == mergeSlab:
		m.slabs = append(m.slabs, make([]mergeEntry, 0, mergeSlab))
		last++
		fallthrough
	default:
		m.slabs[last] = append(m.slabs[last], mergeEntry{})
		e = &m.slabs[last][len(m.slabs[last])-1]
	}
	m.entries[key] = e
	return e, false
}

func (m *Merge) sweep(key string, e *mergeEntry) {
	e.swept = true
	delete(m.entries, key)
	m.hold(-mergeCost - len(key) - len(e.resource.Value))
}

// Begin starts another list, while the watch continues.
func (m *Merge) Begin() {
	m.pass++
	m.listing = true
}

// Listed takes a resource of the list. It reports whether that is news.
func (m *Merge) Listed(r Resource) bool {
	e, known := m.entry(r.Key)
	news := !known || e.resource.Revision < r.Revision
	if news {
		m.keep(e, r)
		e.deleted = false
	}
	e.listed = m.pass
	return news
}

// Upserted takes a resource of the watch.
func (m *Merge) Upserted(r Resource) Verdict {
	e, known := m.entries[r.Key]
	switch {
	case known && r.Revision <= e.resource.Revision:
		return Older
	case known && !e.deleted:
		m.seen(e)
	case m.pass == 1 && m.listing: // Complete will judge
	case r.Revision <= m.floor:
		return Older
	case !m.exact && !m.passed:
		return Doubtful
	}
	e, _ = m.entry(r.Key)
	m.keep(e, r)
	e.deleted, e.watched = false, m.pass
	return Newer
}

// Deleted takes a deletion of the watch, with the revision of the deletion or, where
// deletes have none of their own, the last revision of the resource. It reports
// whether this removes a resource.
func (m *Merge) Deleted(key string, revision uint64) bool {
	e, known := m.entries[key]
	if known && revision < e.resource.Revision {
		return false
	}
	if m.listing {
		e, known = m.entry(key)
		was := known && !e.deleted
		m.keep(e, Resource{Key: key, Revision: revision})
		e.watched, e.deleted = m.pass, true
		return was
	}
	if !known {
		return false
	}
	m.seen(e)
	m.sweep(key, e)
	if !m.exact {
		// What follows in the watch was created later, so it is newer than this
		// resource: an upsert up to this revision is a repetition.
		m.floor = max(m.floor, revision)
	}
	return true
}

// seen is called for a change that is newer than what the last list showed of its
// key.
func (m *Merge) seen(e *mergeEntry) {
	m.passed = m.passed || !m.listing && e.listed == m.pass
}

// Complete ends the list, which shows everything up to revision listed. If the pages
// name the revision at which they were read, listed is the smallest of these and
// exact is true. Otherwise it is the newest revision of a resource of the list, and
// exact is false.
//
// It returns the keys of committed resources that are gone, as the list shows, and
// the resources that are in doubt, like an upsert with that verdict. Neither are
// part of the state any longer. A resource that is in doubt although it was passed
// on must be deleted if it is not confirmed, and must not be sent again if it is.
func (m *Merge) Complete(listed uint64, exact bool) (gone []string, doubtful []Resource) {
	m.listing, m.passed, m.exact = false, false, exact
	m.floor = max(m.floor, listed)
	for key, e := range m.entries {
		switch {
		case e.deleted:
		case e.listed == m.pass:
			continue
		case e.watched < m.pass || e.resource.Revision <= listed:
			if m.live {
				gone = append(gone, key)
			}
		case exact:
			continue
		default:
			doubtful = append(doubtful, e.resource)
		}
		m.sweep(key, e)
	}
	return gone, doubtful
}

// Confirm takes a resource that was in doubt, as the watch reported it, after it was
// read. It was created after the list, which shows that the watch has passed the
// list.
func (m *Merge) Confirm(r Resource) {
	m.passed = true
	e, _ := m.entry(r.Key)
	m.keep(e, r)
	e.deleted, e.listed, e.watched = false, 0, m.pass
}

// Commit sends the state to sink, as a snapshot of the revision order epoch that is
// complete up to revision. Values are no longer kept.
func (m *Merge) Commit(sink Sink, epoch string, revision uint64) error {
	if err := sink.Reset(epoch); err != nil {
		return err
	}
	m.live = true
	for _, slab := range m.slabs {
		if err := m.pour(slab, sink); err != nil {
			return err
		}
	}
	m.slabs = nil
	return sink.Commit(revision)
}

func (m *Merge) pour(slab []mergeEntry, sink Sink) error {
	for i := range slab {
		e := &slab[i]
		if e.swept || e.deleted {
			continue
		}
		if err := sink.Upsert(e.resource); err != nil {
			return err
		}
		m.keep(e, e.resource)
	}
	return nil
}

// Len is how many resources there are.
func (m *Merge) Len() int { return len(m.entries) }

// keep stores a resource, or what is needed of it.
func (m *Merge) keep(e *mergeEntry, r Resource) {
	if m.live {
		r = Resource{Key: r.Key, Revision: r.Revision}
	}
	m.hold(len(r.Value) - len(e.resource.Value))
	e.resource = r
}

// CountAt makes the Merge report to the sink of a watch how much is held. Call it
// before anything is. See Holder.
func (m *Merge) CountAt(sink Sink) { m.sink = sink }

// Close tells the sink that nothing is held any longer. The Merge must not be used
// afterwards.
func (m *Merge) Close() {
	m.hold(-m.held)
	m.entries, m.slabs = nil, nil
}

// hold counts bytes held.
func (m *Merge) hold(bytes int) {
	m.held += bytes
	if m.sink != nil && bytes != 0 {
		Hold(m.sink, int64(bytes))
	}
}

// mergeCost is what an entry takes in addition to its key and its value: itself, and
// a place in a map.
const mergeCost = int(unsafe.Sizeof(mergeEntry{})) + 64
