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
	mu    sync.Mutex                       // guards the following fields
	known map[follower]map[string]followed // by the epoch of the part
	order []former                         // oldest first
	lost  time.Time                        // when a switch was last forgotten early, for lack of room
}

// follower is a principal that followed a watch, or parts of it.
type follower struct{ who, watch string }

// former is an epoch of a part of a watch that a principal has followed.
type former struct {
	follower
	epoch string
	at    time.Time
}

// followed says when a part was followed last, and what its clients may have of it.
type followed struct {
	at       time.Time
	part     weak.Pointer[watch.Watch] // nil: they are not told what was in it
	sent     uint64                    // up to which seq they may have been sent what it had
	switched bool                      // a stream has switched from it
}

// anyEpoch is the epoch of all parts of one follower beyond the limit.
const anyEpoch = ""

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

// note remembers a part, in an epoch, that a stream has stopped following.
func (f *formers) note(of follower, epoch string, now followed) {
	now.at = time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now.at)
	parts := f.known[of]
	last, known := parts[epoch]
	switch {
	case !known && len(parts) >= formersOfOne && !now.switched:
		return
	case !known && len(parts) >= formersOfOne:
		epoch = anyEpoch
		last, known = parts[epoch]
	}
	now.switched = now.switched || last.switched
	now.sent = max(now.sent, last.sent)
	if known && last.part != now.part {
		now.part = weak.Pointer[watch.Watch]{}
	}
	if known && now.at.Sub(last.at) < formerAgain {
		now.at = last.at
		parts[epoch] = now
		return
	}
	if parts == nil {
		parts = map[string]followed{}
		if f.known == nil {
			f.known = map[follower]map[string]followed{}
		}
		f.known[of] = parts
	}
	parts[epoch] = now
	f.order = append(f.order, former{of, epoch, now.at})
}

// expire forgets the parts that are too old, and the oldest ones if there are too many.
func (f *formers) expire(now time.Time) {
	for len(f.order) > 0 && (len(f.order) >= formersMost || now.Sub(f.order[0].at) >= formerFor) {
		oldest := f.order[0]
		f.order[0], f.order = former{}, f.order[1:]
		parts := f.known[oldest.follower]
		last := parts[oldest.epoch]
		if last.at != oldest.at {
			continue // it was followed again
		}
		if last.switched && now.Sub(last.at) < formerFor {
			f.lost = now
		}
		if delete(parts, oldest.epoch); len(parts) == 0 {
			delete(f.known, oldest.follower)
		}
	}
}

// find returns what is known of a principal that followed a part of a watch in an epoch; false:
// nothing. While a switch may have been forgotten, every client may have switched.
func (f *formers) find(of follower, epoch string) (last followed, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	f.expire(now)
	if last, known = f.known[of][epoch]; !known {
		last, known = f.known[of][anyEpoch]
	}
	if !known && !f.lost.IsZero() && now.Sub(f.lost) < formerFor {
		return followed{switched: true}, true
	}
	return last, known
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
		t.gone(p, before, followed{switched: true})
	}
	p.follows[index] = part
}

// Doubt returns the Holding of a client that comes back with a position, but may have been cut
// off in the middle of a switch since, so that what it has is unknown; nil: it may not.
func (t *Table) Doubt(p *Pass, part *watch.Watch, at *stream.Position) *log.Holding {
	if last, _ := t.followed(p, part, at); last.switched {
		return part.HoldsUnknown()
	}
	return nil
}

// followed returns what is known of the former streams of a pass's holder in the epoch of a
// position; false: nothing.
func (t *Table) followed(p *Pass, part *watch.Watch, at *stream.Position) (last followed, known bool) {
	if p == nil || at == nil {
		return followed{}, false
	}
	return t.formers.find(follower{p.holder(), part.Name()}, at.Epoch)
}

// left remembers the parts that a stream followed until it ended. If its holder lost the right to
// a part before that, no client is told what was in it.
func (t *Table) left(p *Pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, part := range p.follows {
		if part == nil {
			continue
		}
		now := followed{part: weak.Make(part), sent: part.Snapshot().Seq()}
		if _, waits := p.next[i]; waits || p.ending.Load() != nil {
			now.part = weak.Pointer[watch.Watch]{}
		}
		t.gone(p, part, now)
	}
	p.follows = nil
}

// gone remembers a part that a stream has stopped following. Nothing was sent of a part that is
// not primed.
func (t *Table) gone(p *Pass, part *watch.Watch, now followed) {
	if epoch := part.Snapshot().Epoch(); epoch != "" {
		t.formers.note(follower{p.holder(), part.Name()}, epoch, now)
	}
}

// holder returns the key of the principal that holds the pass.
func (p *Pass) holder() string { return p.validity.Load().who.Key() }

func (p *Pass) differences(index int) *log.Differences {
	p.judging.Lock()
	defer p.judging.Unlock()
	return p.parts[index].Differences()
}
