package listing

import (
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/storage"
)

// pageAge is how long the revision of a listing is guaranteed to stay readable after
// its last page was asked for.
const pageAge = time.Minute

// pageVersions keeps the versions of the newest listings, so that a watch that
// changes fast can still be read page by page. Only a few: they pin memory.
type pageVersions struct {
	slots [4]atomic.Pointer[pageVersion]
}

type pageVersion struct {
	pin  *pin.Pin
	asOf uint64
	at   time.Time
}

// keep renews the version's slot, or takes the oldest one.
func (p *pageVersions) keep(pins *pin.Set, v *storage.Version, asOf uint64, now time.Time) {
	if v.Revision != asOf {
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
	before, one := oldest.Load(), pins.Keep(v)
	if one != nil && !oldest.CompareAndSwap(before, &pageVersion{one, asOf, now}) {
		pins.Release(one) // another listing was faster
		return
	}
	if one != nil {
		before.release(pins)
	}
}

// version returns the version kept; nil if there is none, or if it was taken away.
func (p *pageVersion) version() *storage.Version {
	if p == nil {
		return nil
	}
	return p.pin.Version()
}

func (p *pageVersion) release(pins *pin.Set) {
	if p != nil {
		pins.Release(p.pin)
	}
}

func (p *pageVersions) find(t Token) *storage.Version {
	for i := range p.slots {
		held := p.slots[i].Load()
		if v := held.version(); v != nil && held.asOf == t.AsOf && v.Epoch == t.Epoch && v.DeletesCompleteTo >= t.DeletesCompleteTo() {
			return v
		}
	}
	return nil
}

// expire releases versions that were not asked for lately.
func (p *pageVersions) expire(pins *pin.Set) {
	for i := range p.slots {
		held := p.slots[i].Load()
		if held != nil && time.Since(held.at) > pageAge && p.slots[i].CompareAndSwap(held, nil) {
			held.release(pins)
		}
	}
}
