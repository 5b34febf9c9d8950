package log

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

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
}

// pageBytes is about how many bytes of keys and values a page has at most, unless
// its only resource has more: a page is built in memory, and gRPC clients take
// messages of 4 MiB by default.
const pageBytes = 3 << 20

// pageToken is the place of a page: as of revision T, after key K at revision R. It
// names nothing specific to this replica, so any other may serve the next page.
type pageToken struct {
	Epoch  string `json:"e"`
	AsOf   uint64 `json:"t"`
	After  uint64 `json:"r"`
	Key    []byte `json:"k"`
	Count  int    `json:"n"`
	Prefix []byte `json:"p,omitempty"` // a hash: the token must come with the prefix that made it
	// Unswept is that of the listing's position.
	Unswept uint64 `json:"u,omitempty"`
}

// swept is that of the listing's position.
func (t pageToken) swept() uint64 { return t.AsOf - min(t.AsOf, t.Unswept) }

func (t pageToken) String() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic("stream: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePageToken(s string) (t pageToken, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.AsOf == 0 || t.Epoch == "" {
		return t, &stream.InvalidError{What: "page token", Got: s, Want: "the next_page_token of the page before"}
	}
	return t, nil
}

// defaultPageSize is the number of resources in a page unless another is asked for.
const defaultPageSize = 1000

// Page returns up to size resources whose key begins with prefix, by rising revision
// and, within one revision, by key; fewer if they are large. A size that is not
// positive is the default, 1,000. With the token of a page it returns the next one,
// as of the same revision. The error is ErrPageGone if that can no longer be built,
// and an InvalidError if the token is not one of ours. The log must be primed.
func (l *Log) Page(prefix, token string, size int) (Page, error) {
	if size <= 0 {
		size = defaultPageSize
	}
	v, seq, t, err := l.listing(prefix, token)
	if err != nil {
		return Page{}, err
	}
	p := Page{Revision: t.AsOf, Count: t.Count}
	p.Position = l.position(stream.NarrowEpoch(v.epoch, prefix), t.AsOf, t.AsOf, t.swept())
	var more bool
	p.Resources, more = l.page(v, seq, prefix, t, size)
	if token == "" && !more {
		p.Position = v.withRun(p.Position)
	}
	if more {
		last := p.Resources[len(p.Resources)-1]
		t.After, t.Key = last.Revision, []byte(last.Key)
		p.Next = t.String()
		l.pages.keep(l.pins, v, t.AsOf, time.Now())
	}
	return p, nil
}

// listing returns where a page begins, and the version and seq at which to read it:
// those of the token, or of a listing that begins now.
func (l *Log) listing(prefix, token string) (v *version, seq uint64, t pageToken, err error) {
	if token == "" {
		v = l.head.Load()
		t = pageToken{
			Epoch: v.epoch, AsOf: v.revision, Prefix: prefixHash(prefix), Count: Snapshot{l, v}.countPrefix(prefix),
			Unswept: Snapshot{l, v}.Position("").Unswept,
		}
		return v, v.seq, t, nil
	}
	if t, err = parsePageToken(token); err != nil {
		return nil, 0, t, err
	}
	if !slices.Equal(t.Prefix, prefixHash(prefix)) {
		return nil, 0, t, &stream.InvalidError{What: "page token", Got: token, Want: "the same prefix as for the page before"}
	}
	v, seq, ok := l.asOf(t)
	if !ok {
		return nil, 0, t, ErrPageGone
	}
	return v, seq, t, nil
}

// fitting returns how many of the resources fit into a page, at least one.
func fitting(resources []stream.Resource, size int) int {
	bytes := 0
	for i, r := range resources {
		bytes += sizeOf(r)
		if i == size || i > 0 && bytes > pageBytes {
			return i
		}
	}
	return len(resources)
}

func sizeOf(r stream.Resource) int { return len(r.Key) + len(r.Value) }

func prefixHash(prefix string) []byte {
	if prefix == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(prefix))
	return sum[:8]
}

// asOf returns a version, and the seq at which to read it, that show the state at
// the token's revision.
func (l *Log) asOf(t pageToken) (*version, uint64, bool) {
	if v := l.pages.find(t); v != nil {
		return v, v.seq, true
	}
	v := l.head.Load()
	if v.epoch != t.Epoch || t.AsOf > v.revision {
		return nil, 0, false
	}
	if t.AsOf == v.revision {
		return v, v.seq, v.swept >= t.swept()
	}
	if strings.HasPrefix(v.epoch, stream.UnnumberedEpoch) {
		// Which deletes without a revision the listing has seen is not known.
		return nil, 0, false
	}
	if t.AsOf < v.origin {
		return nil, 0, false
	}
	seq := v.seqBefore(v.newerThan(t.AsOf))
	return v, seq, seq >= v.readable
}

// pageAge is how long the revision of a listing is guaranteed to stay readable after
// its last page was asked for.
const pageAge = time.Minute

// pageVersions keeps the versions of the newest listings, so that a watch that
// changes fast can still be read page by page. Only a few: they pin memory.
type pageVersions struct {
	slots [4]atomic.Pointer[pageVersion]
}

type pageVersion struct {
	pin  *pin
	asOf uint64
	at   time.Time
}

// keep renews the version's slot, or takes the oldest one.
func (p *pageVersions) keep(pins *pins, v *version, asOf uint64, now time.Time) {
	if v.revision != asOf {
		return
	}
	oldest := &p.slots[0]
	for i := range p.slots {
		slot := &p.slots[i]
		held := slot.Load()
		if held.version() == v {
			slot.CompareAndSwap(held, &pageVersion{held.pin, asOf, now})
			return
		}
		if first := oldest.Load(); first.version() != nil && (held.version() == nil || held.at.Before(first.at)) {
			oldest = slot
		}
	}
	before, one := oldest.Load(), pins.add(v, 0)
	if one != nil && !oldest.CompareAndSwap(before, &pageVersion{one, asOf, now}) {
		pins.release(one) // another listing was faster
		return
	}
	if one != nil {
		before.release(pins)
	}
}

// version returns the version kept; nil if there is none, or if it was taken away.
func (p *pageVersion) version() *version {
	if p == nil {
		return nil
	}
	return p.pin.version()
}

func (p *pageVersion) release(pins *pins) {
	if p != nil {
		pins.release(p.pin)
	}
}

func (p *pageVersions) find(t pageToken) *version {
	for i := range p.slots {
		held := p.slots[i].Load()
		if v := held.version(); v != nil && held.asOf == t.AsOf && v.epoch == t.Epoch && v.swept >= t.swept() {
			return v
		}
	}
	return nil
}

// expire releases versions that were not asked for lately.
func (p *pageVersions) expire(pins *pins) {
	for i := range p.slots {
		held := p.slots[i].Load()
		if held != nil && time.Since(held.at) > pageAge && p.slots[i].CompareAndSwap(held, nil) {
			held.release(pins)
		}
	}
}
