package listing

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// pager builds a page: whole groups of one revision, each in key order, until there
// is more than fits. Its work is in proportion to the page, wherever in the listing
// the page is.
type pager struct {
	// Static after construction.
	format *storage.Format
	sorted *sortedGroups
	v      *storage.Version
	seq    uint64 // at which it reads
	size   int
	last   Token // where the previous page ended

	page  []stream.Resource
	bytes int
}

// Page returns up to size resources of v, as of seq, after the token, and whether there
// are more.
func (c *Cache) Page(v *storage.Version, f *storage.Format, seq uint64, t Token, size int) (page []stream.Resource, more bool) {
	if t.Count == 0 {
		return nil, false
	}
	p := pager{format: f, sorted: &c.sorted, v: v, seq: seq, size: size, last: t}
	for at, looked := v.FromRevision(t.After), 1; !p.full() && at.Segment < len(v.Segments); looked++ {
		if looked%storage.TurnEntries == 0 {
			runtime.Gosched() // let others run
		}
		e := v.Entry(at)
		if e.Seq > seq {
			break
		}
		at = p.addGroup(at, e.Revision)
	}
	n := fitting(p.page, size)
	return p.page[:n:n], n < len(p.page)
}

// full reports that there is more than fits.
func (p *pager) full() bool {
	return len(p.page) > p.size || len(p.page) > 1 && p.bytes > PageBytes
}

// addGroup adds the resources of one revision, whose entries begin at a place. It
// returns the place after the group.
func (p *pager) addGroup(at storage.Place, revision uint64) storage.Place {
	end, ok := p.endOf(at, revision)
	if !ok {
		p.addSorted(p.sorted.get(p.v, p.format, p.seq, revision))
		return p.v.Search(func(e *storage.Entry) bool { return e.Revision > revision })
	}
	before := len(p.page)
	for ; at != end; at = p.v.Next(at) {
		p.add(p.v.Segments[at.Segment], p.v.Entry(at))
	}
	slices.SortFunc(p.page[before:], func(a, b stream.Resource) int { return cmp.Compare(a.Key, b.Key) })
	return end
}

// endOf returns the place after the entries of one revision, which begin at a place;
// false if there are too many of them.
func (p *pager) endOf(at storage.Place, revision uint64) (storage.Place, bool) {
	for range LargeGroup {
		if at.Segment == len(p.v.Segments) {
			return at, true
		}
		if e := p.v.Entry(at); e.Revision != revision || e.Seq > p.seq {
			return at, true
		}
		at = p.v.Next(at)
	}
	return at, false
}

// addSorted adds resources of an already sorted group, as many as fit.
func (p *pager) addSorted(g sortedGroup) {
	first := g.search(p.v, p.format, func(key string) bool { return p.isNext(g.revision, key) })
	for _, seq := range g.seqs[first:] {
		s, e := p.v.Find(seq)
		if e == nil {
			continue
		}
		if p.full() {
			return
		}
		p.add(s, e)
	}
}

// add adds a resource, if it belongs to the listing.
func (p *pager) add(s *storage.Segment, e *storage.Entry) {
	if e.Is(storage.IsDelete) || !e.Visible(p.seq) {
		return
	}
	if r := p.format.Event(s, e).Resource; p.isNext(r.Revision, r.Key) {
		p.page = append(p.page, r)
		p.bytes += sizeOf(r)
	}
}

// isNext reports whether a resource comes after the previous page.
func (p *pager) isNext(revision uint64, key string) bool {
	return revision > p.last.After || key > string(p.last.Key)
}

// PageBytes is about how many bytes of keys and values a page has at most, unless
// its only resource has more: a page is built in memory, and gRPC clients take
// messages of 4 MiB by default.
const PageBytes = 3 << 20

// Fits reports whether one page of up to size resources surely has all of a version. The version has
// more bytes than their keys and values, so false may be wrong.
func (c *Cache) Fits(v *storage.Version, size int) bool {
	return v.Count() <= size && v.Bytes <= PageBytes
}

// fitting returns how many of the resources fit into a page, at least one.
func fitting(resources []stream.Resource, size int) int {
	bytes := 0
	for i, r := range resources {
		bytes += sizeOf(r)
		if i == size || i > 0 && bytes > PageBytes {
			return i
		}
	}
	return len(resources)
}

func sizeOf(r stream.Resource) int { return len(r.Key) + len(r.Value) }
