package log

import (
	"cmp"
	"errors"
	"slices"

	"github.com/watchtide/watchtide/internal/log/internal/listing"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// ErrPageGone means that the revision of a page token can no longer be read: begin
// again without a token.
var ErrPageGone = errors.New("the revision of the page token is gone")

// Page is a part of the state of a watch at one revision.
type Page struct {
	Position  stream.Position
	Revision  uint64
	Count     int // number of resources in all pages together
	Resources []stream.Resource
	Next      string // token of the next page; empty on the last one
	Tag       string // of the first page: Snapshot.Tag; else empty
}

// A size that is not positive is the default.
const defaultPageSize = 1000

// Page returns up to size resources, by rising revision and, within one revision, by key;
// fewer if they are large. With the token of a page it returns the next one, as of the same
// revision. The error is ErrPageGone if that can no longer be built, and an InvalidError if
// the token is not one of ours. The log must be primed.
func (l *Log) Page(token string, size int) (Page, error) {
	size = cmp.Or(max(size, 0), defaultPageSize)
	v, seq, t, err := l.listing(token)
	if err != nil {
		return Page{}, err
	}
	p := Page{Revision: t.AsOf, Count: t.Count}
	p.Position = l.position(v.Epoch, t.AsOf, t.AsOf, t.DeletesCompleteTo())
	var more bool
	p.Resources, more = l.listings.Page(v, l.framing, seq, t, size)
	if token == "" {
		p.Tag = Snapshot{l, v}.Tag()
	}
	if token == "" && !more {
		p.Position = v.WithRun(p.Position)
	}
	if more {
		last := p.Resources[len(p.Resources)-1]
		t.After, t.Key = last.Revision, []byte(last.Key)
		p.Next = t.String()
		l.listings.Keep(l.pins, v, t.AsOf)
	}
	return p, nil
}

// PageOf returns the page with all resources of a part of the state s: those that were looked up, in any order.
// The part has an epoch of its own. false: they may not fit into a page of up to size resources, or their position
// is one of this replica only.
func (s Snapshot) PageOf(resources []stream.Resource, epoch string, size int) (Page, bool) {
	at := s.Position()
	bytes, newest := 0, uint64(0)
	for _, r := range resources {
		bytes, newest = bytes+len(r.Key)+len(r.Value), max(newest, r.Revision)
	}
	if len(resources) > size || bytes > listing.PageBytes || at.Run != 0 || at.DeletesBehind != 0 {
		return Page{}, false
	}
	slices.SortFunc(resources, func(a, b stream.Resource) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Key, b.Key))
	})
	at.Epoch = epoch
	return Page{Position: at, Revision: at.AsOf, Count: len(resources), Resources: resources, Tag: listing.TagOf(epoch, newest, len(resources))}, true
}

// listing returns where a page begins, and the version and seq at which to read it:
// those of the token, or of a listing that begins now.
func (l *Log) listing(token string) (v *storage.Version, seq uint64, t listing.Token, err error) {
	if token == "" {
		v = l.newest()
		t = listing.Token{
			Epoch: v.Epoch, AsOf: v.Revision, Count: v.Count(),
			DeletesBehind: Snapshot{l, v}.Position().DeletesBehind,
		}
		return v, v.Seq, t, nil
	}
	if t, err = listing.ParseToken(token); err != nil {
		return nil, 0, t, err
	}
	v, seq, ok := l.listings.AsOf(t, l.newest())
	if !ok {
		return nil, 0, t, ErrPageGone
	}
	return v, seq, t, nil
}
