package pass

import (
	"sync"
	"time"
	"weak"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// formers remembers which parts principals followed a moment ago. A client that comes back with
// a position of a former part gets the difference only if its principal is known to have
// followed that part: the deletes would tell others what was in it. It gets no difference
// either if a stream of its principal has switched from that part: a client that was cut off in
// the middle of a switch may have more than the part, and the difference would not delete that.
// Remembering a part does not keep it in memory.
//
// All methods may be called from any goroutine.
type formers struct {
	mu    sync.Mutex // guards the following fields
	known map[follower]map[weak.Pointer[watch.Watch]]followed
	order []former // oldest first
}

// follower is a principal that followed a watch, or parts of it.
type follower struct{ who, watch string }

// former is a part of a watch that a principal has followed.
type former struct {
	follower
	part weak.Pointer[watch.Watch]
	at   time.Time
}

// followed says when a part was followed last, and whether a stream has switched from it.
type followed struct {
	at       time.Time
	switched bool
}

const (
	// formerFor is how long a part is remembered after its last stream. A view without
	// subscribers exists no longer than that.
	formerFor = 30 * time.Second
	// formerAgain is the time within which the ends of several streams of one principal count
	// as one: they often end together.
	formerAgain = time.Second
	// formersMost is the number of parts that are remembered, and formersOfOne that for one
	// follower.
	formersMost  = 10_000
	formersOfOne = 8
)

// add remembers a part that a stream has followed until its end.
func (f *formers) add(who, name string, part *watch.Watch) { f.note(who, name, part, false) }

// leave remembers that a stream has switched from a part to another one.
func (f *formers) leave(who, name string, part *watch.Watch) { f.note(who, name, part, true) }

func (f *formers) note(who, name string, part *watch.Watch, switched bool) {
	one := former{follower{who, name}, weak.Make(part), time.Now()}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(one.at)
	parts := f.known[one.follower]
	last, known := parts[one.part]
	switch {
	case switched && !last.switched:
	case !known && len(parts) >= formersOfOne, known && one.at.Sub(last.at) < formerAgain:
		return
	}
	if parts == nil {
		parts = map[weak.Pointer[watch.Watch]]followed{}
		if f.known == nil {
			f.known = map[follower]map[weak.Pointer[watch.Watch]]followed{}
		}
		f.known[one.follower] = parts
	}
	parts[one.part] = followed{one.at, switched || last.switched}
	f.order = append(f.order, one)
}

// expire forgets the parts that are too old, and the oldest ones if there are too many.
func (f *formers) expire(now time.Time) {
	for len(f.order) > 0 && (len(f.order) >= formersMost || now.Sub(f.order[0].at) >= formerFor) {
		oldest := f.order[0]
		f.order[0], f.order = former{}, f.order[1:]
		parts := f.known[oldest.follower]
		if parts[oldest.part].at != oldest.at {
			continue // it was followed again
		}
		if delete(parts, oldest.part); len(parts) == 0 {
			delete(f.known, oldest.follower)
		}
	}
}

// find returns the part of a watch that a principal followed in an epoch, and whether one of
// its streams has switched from it; nil: none is remembered.
func (f *formers) find(who, name, epoch string) (part *watch.Watch, switched bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(time.Now())
	for p, last := range f.known[follower{who, name}] {
		if part := p.Value(); part != nil && part.Snapshot().Epoch() == epoch {
			return part, last.switched
		}
	}
	return nil, false
}

// Follow records the part of a watch that a stream follows from now on.
func (t *Table) Follow(p *Pass, index int, part *watch.Watch) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.follows == nil {
		p.follows = make([]*watch.Watch, len(p.watches))
	}
	if before := p.follows[index]; before != nil {
		t.formers.leave(p.holder(), before.Name(), before)
	}
	p.follows[index] = part
}

// Holding returns what a client has that comes back with a position of a part that it followed
// before; nil: that is unknown, or is what the position says. If the client may have been cut
// off in the middle of a switch, what it has is unknown, even if it follows the same part
// again.
func (t *Table) Holding(p *Pass, index int, part *watch.Watch, at *stream.Position) *log.Holding {
	if p == nil || at == nil {
		return nil
	}
	switch former, switched := t.formers.find(p.holder(), part.Name(), at.Epoch); {
	case former == nil:
		return nil
	case switched:
		return part.HoldsUnknown()
	case former == part || part.Snapshot().Epoch() == at.Epoch:
		return nil
	default:
		return former.HoldsAt(*at, p.differences(index))
	}
}

// left remembers the parts that a stream followed until it ended.
func (t *Table) left(p *Pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.follows {
		if part != nil {
			t.formers.add(p.holder(), part.Name(), part)
		}
	}
	p.follows = nil
}

// holder returns the key of the principal that holds the pass.
func (p *Pass) holder() string { return p.validity.Load().who.Key() }

func (p *Pass) differences(index int) *log.Differences {
	p.judging.Lock()
	defer p.judging.Unlock()
	return p.parts[index].Differences()
}
