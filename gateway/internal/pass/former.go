package pass

import (
	"sync"
	"time"
	"weak"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// formers remembers what principals followed until a moment ago. A client that comes back with
// a position of a former part is sent what differs only if it is known to have followed that:
// others would learn from the deletes what was in it. So it is only if no stream of its
// principal has switched from that part: a client that was cut off within the difference may
// have some of it, which nothing would take from it. Parts are not kept in memory by that.
//
// All methods may be called from any goroutine.
type formers struct {
	mu    sync.Mutex                       // guards the following fields
	known map[follower]map[string]followed // by the epoch of the part
	order []former                         // oldest first
	lost  time.Time                        // when a switch was last forgotten early, for lack of room
}

// follower is somebody who followed a watch, or parts of it.
type follower struct{ who, watch string }

// former is an epoch of a part of a watch that somebody followed up to a moment.
type former struct {
	follower
	epoch string
	at    time.Time
}

// followed is when a part was followed last, and what its clients have of it.
type followed struct {
	at       time.Time
	part     weak.Pointer[watch.Watch] // nil: they are not told what was in it
	sent     uint64                    // up to which seq they may have been sent what it had
	switched bool                      // a stream has switched from it
}

// anyEpoch stands for the parts that one follower has too many of.
const anyEpoch = ""

const (
	// formerFor is how long a part is remembered. It exists no longer without subscribers.
	formerFor = 30 * time.Second
	// formerAgain is how long a moment lasts: streams of one principal often end together.
	formerAgain = time.Second
	// formersMost is how many are remembered, and formersOfOne of one follower.
	formersMost  = 10_000
	formersOfOne = 8
)

// note remembers that a stream does not follow a part of an epoch any more.
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

// expire forgets what is too old or too much.
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

// find returns what is known of somebody who followed a part of a watch in an epoch; false:
// nothing. As long as a switch may be missing, everybody is taken to have switched.
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

// Follow records what a stream follows from now on of a watch.
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

// Holding returns what a client has that comes back with a position of what it followed before;
// nil: it is not known, or is what the position says. A client that may have been cut off while
// its stream switched may have anything, also if it follows the same again.
func (t *Table) Holding(p *Pass, index int, part *watch.Watch, at *stream.Position) *log.Holding {
	if p == nil || at == nil {
		return nil
	}
	last, known := t.formers.find(follower{p.holder(), part.Name()}, at.Epoch)
	switch former := last.part.Value(); {
	case !known:
		return nil
	case last.switched:
		return part.HoldsUnknown()
	case former == nil || part.Snapshot().Epoch() == at.Epoch:
		return nil
	default:
		return former.HoldsAt(*at, last.sent, p.differences(index))
	}
}

// left remembers what a stream followed that has ended. If its holder might see something else
// before the end, the rest is not for them.
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

// gone remembers that a stream does not follow a part any more. Of one that is not primed it was
// sent nothing.
func (t *Table) gone(p *Pass, part *watch.Watch, now followed) {
	if epoch := part.Snapshot().Epoch(); epoch != "" {
		t.formers.note(follower{p.holder(), part.Name()}, epoch, now)
	}
}

// holder is the key of the principal whose the pass is.
func (p *Pass) holder() string { return p.validity.Load().who.Key() }

func (p *Pass) differences(index int) *log.Differences {
	p.judging.Lock()
	defer p.judging.Unlock()
	return p.parts[index].Differences()
}
