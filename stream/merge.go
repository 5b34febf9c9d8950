package stream

import "unsafe"

// Merge makes one state of a collection that is read in two ways at once: a list,
// page by page, and a watch that runs freely beside it. For each key the newest
// revision counts, whoever told it first; a deletion that overtakes the list is
// remembered until the list is complete; what the list does not show is swept.
// So the list may be read at any pace and its pages at different revisions: no
// revision has to stay readable until the end.
//
// A source
//
//  1. opens the watch and hands all that it tells to Upserted and Deleted,
//  2. reads the list, no earlier than that, and hands it to Listed,
//  3. calls Complete, and settles what that leaves in doubt,
//  4. calls Commit, once the watch has told everything up to the revision at which
//     the state is to be complete,
//  5. and may go on to ask Upserted and Deleted what of the watch is news; Begin
//     starts another list, beside the same watch.
//
// A watch may begin in the past, as one that a server answers from a cache does.
// It then tells of resources that were deleted long ago, under the revision that
// they had. Those up to the newest that the list shows are known to be gone; for
// one beyond that nobody knows whether it was created after the list or deleted
// just before it: it is Doubtful, until the watch is seen to have passed the list.
//
// A Merge belongs to one goroutine.
type Merge struct {
	entries map[string]*mergeEntry
	slabs   [][]mergeEntry // where they lie, in the order in which they came
	pass    uint32         // of the list; the first is 1
	listing bool           // the list of this pass is not complete
	live    bool           // committed: only keys and revisions are kept
	floor   uint64         // unknown keys up to here were deleted
	exact   bool           // the lists name the revision that they show
	passed  bool           // the watch has passed the list
	sink    Sink           // is told how much is held; nil: nobody is
	held    int            // bytes
}

// mergeEntry is the newest that is known of a key.
type mergeEntry struct {
	resource Resource // without Value and Encoding once committed
	deleted  bool     // only while a list is read
	swept    bool     // it is in no map any more
	listed   uint32   // the pass in which the list showed the key
	watched  uint32   // the pass in which the watch changed it
}

// Verdict says what an upsert of the watch is worth.
type Verdict uint8

const (
	// Older: the list, or the watch, has said this or something newer already.
	Older Verdict = iota
	// Newer: it is the newest state of its key.
	Newer
	// Doubtful: it is not taken. Read the resource: if it exists, and is the one
	// that the watch told of (not another one of the same name), it is newer than
	// the list, and Confirm takes it. Else it is dead: pass on nothing more that
	// the watch tells of this one until it has told its deletion, or it would
	// come back for a moment.
	Doubtful
)

// NewMerge returns a Merge whose first list has begun.
func NewMerge() *Merge {
	return &Merge{entries: map[string]*mergeEntry{}, pass: 1, listing: true}
}

// mergeSlab is how many entries are allocated at a time.
const mergeSlab = 512

// entry returns the entry of a key, and makes one if it is not known.
func (m *Merge) entry(key string) (e *mergeEntry, known bool) {
	if e, known = m.entries[key]; known {
		return e, true
	}
	m.hold(mergeCost + len(key))
	last := len(m.slabs) - 1
	switch {
	case m.live:
		e = new(mergeEntry) // it must not hold others of its slab
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

// Begin starts another list, beside the watch that goes on.
func (m *Merge) Begin() {
	m.pass++
	m.listing = true
}

// Listed takes a resource of the list. It returns whether that is news.
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

// Deleted takes a deletion of the watch: with the revision of the deletion, or,
// where deletes have none of their own, with the last that the resource had. It
// returns whether a resource is gone by it.
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
		// What comes after this in the watch was created after it, so later than
		// this resource: an upsert up to here is a repetition.
		m.floor = max(m.floor, revision)
	}
	return true
}

// seen follows a change that is newer than what the last list showed of its key.
func (m *Merge) seen(e *mergeEntry) {
	m.passed = m.passed || !m.listing && e.listed == m.pass
}

// Complete ends the list, which shows everything up to revision listed: where
// pages say as of which revision they were read, the smallest of these, and exact
// is true; else the newest that a resource of the list has, and exact is false.
//
// It returns the keys of resources that were committed and are gone, as the list
// shows; and what is in doubt, as an upsert with that verdict is. Neither is part
// of the state any more. What was in doubt although it was passed on is to be
// deleted, if it is not confirmed, and not to be sent again, if it is.
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

// Confirm takes what was in doubt, as the watch told it, after it was read: that
// the resource was created after the list shows that the watch has passed it.
func (m *Merge) Confirm(r Resource) {
	m.passed = true
	e, _ := m.entry(r.Key)
	m.keep(e, r)
	e.deleted, e.listed, e.watched = false, 0, m.pass
}

// Commit sends the state to sink, as a snapshot of the revision order epoch that
// is complete up to revision. Values are not kept any longer.
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

// keep remembers a resource, or what is needed of it.
func (m *Merge) keep(e *mergeEntry, r Resource) {
	if m.live {
		r = Resource{Key: r.Key, Revision: r.Revision}
	}
	m.hold(len(r.Value) - len(e.resource.Value))
	e.resource = r
}

// CountAt tells the sink of a watch, from now on, how much is held: call it
// before anything is. See Holder.
func (m *Merge) CountAt(sink Sink) { m.sink = sink }

// Close tells the sink that nothing is held any more. The Merge must not be used
// afterwards.
func (m *Merge) Close() {
	m.hold(-m.held)
	m.entries, m.slabs = nil, nil
}

// hold counts bytes.
func (m *Merge) hold(bytes int) {
	m.held += bytes
	if m.sink != nil && bytes != 0 {
		Hold(m.sink, int64(bytes))
	}
}

// mergeCost is what an entry takes beside its key and its value: itself, and a
// place in a map.
const mergeCost = int(unsafe.Sizeof(mergeEntry{})) + 64
