package log

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

// pager builds a page: whole groups of one revision, each in key order, until there
// is more than fits. Its work is in proportion to the page, wherever in the listing
// the page is.
type pager struct {
	// Static after construction.
	log    *Log
	v      *version
	seq    uint64 // at which it reads
	prefix string
	size   int
	last   pageToken // where the previous page ended

	page  []stream.Resource
	bytes int
}

// page returns the resources after the token, and whether there are more.
func (l *Log) page(v *version, seq uint64, prefix string, t pageToken, size int) (page []stream.Resource, more bool) {
	if t.Count == 0 {
		return nil, false
	}
	p := pager{log: l, v: v, seq: seq, prefix: prefix, size: size, last: t}
	for at, looked := v.fromRevision(t.After), 1; !p.full() && at.segment < len(v.segments); looked++ {
		if looked%turnEntries == 0 {
			runtime.Gosched() // let others run
		}
		e := v.entry(at)
		if e.seq > seq {
			break
		}
		at = p.addGroup(at, e.revision)
	}
	n := fitting(p.page, size)
	return p.page[:n:n], n < len(p.page)
}

// full reports that there is more than fits.
func (p *pager) full() bool {
	return len(p.page) > p.size || len(p.page) > 1 && p.bytes > pageBytes
}

// addGroup adds the resources of one revision, whose entries begin at a place. It
// returns the place after the group.
func (p *pager) addGroup(at place, revision uint64) place {
	end, ok := p.endOf(at, revision)
	if !ok {
		p.addSorted(p.log.sortedGroup(p.v, p.seq, revision))
		return p.v.search(func(e *entry) bool { return e.revision > revision })
	}
	before := len(p.page)
	for ; at != end; at = p.v.next(at) {
		p.add(p.v.segments[at.segment], p.v.entry(at))
	}
	slices.SortFunc(p.page[before:], func(a, b stream.Resource) int { return cmp.Compare(a.Key, b.Key) })
	return end
}

// endOf returns the place after the entries of one revision, which begin at a place;
// false if there are too many of them.
func (p *pager) endOf(at place, revision uint64) (place, bool) {
	for range largeGroup {
		if at.segment == len(p.v.segments) {
			return at, true
		}
		if e := p.v.entry(at); e.revision != revision || e.seq > p.seq {
			return at, true
		}
		at = p.v.next(at)
	}
	return at, false
}

// addSorted adds resources of an already sorted group, as many as fit.
func (p *pager) addSorted(g sortedGroup) {
	first := g.search(p.v, &p.log.framing, func(key string) bool { return key >= p.prefix && p.isNext(g.revision, key) })
	for _, seq := range g.seqs[first:] {
		s, e := p.v.find(seq)
		if e == nil {
			continue
		}
		if p.full() || !p.log.framing.hasPrefix(s, e, p.prefix) {
			return // keys with the prefix are adjacent
		}
		p.add(s, e)
	}
}

// add adds a resource, if it belongs to the listing.
func (p *pager) add(s *segment, e *entry) {
	f := &p.log.framing
	if e.is(isDelete) || !e.visible(p.seq) || !f.hasPrefix(s, e, p.prefix) {
		return
	}
	if r := f.event(p.log.watch, s, e).Resource; p.isNext(r.Revision, r.Key) {
		p.page = append(p.page, r)
		p.bytes += sizeOf(r)
	}
}

// isNext reports whether a resource comes after the previous page.
func (p *pager) isNext(revision uint64, key string) bool {
	return revision > p.last.After || key > string(p.last.Key)
}
