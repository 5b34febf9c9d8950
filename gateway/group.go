package gateway

import (
	"slices"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/gateway/deflate"
)

// group is many streams of the same watches, in the same format, that have all
// that there is: what is said to one is said to all, and rendered once.
//
// Owned by one shard.
type group struct {
	conversation // of all; its subscriptions stand for the members
	index        int32
	key          string
	members      []int32 // slots

	payload []byte      // of the chunk that is being said, as it was said
	said    int         // bytes of all chunks so far, without their heads
	sum     deflate.Sum // of all payloads, if gzip; the members know by what theirs differ
	buffer  []byte      // chunks that were said, and not written to all
	base    uint64      // how much was said before buffer
	lent    bool        // buffer is read by former members too, so that it must not be used again
	behind  int         // members that have not been written everything
	at      int         // the member that was written last

	oldest time.Time // commit in buffer; zero: none

	dissolves bool // its members go on by themselves, one after the other

	queued  bool      // for a turn
	looked  time.Time // when the shard looks at it even without news
	waiting int       // where among those that it looks at, counted from 1; 0: not there
}

const (
	// groupFull is how much is said at most before all members were written what
	// was said: not more than a connection takes at once, see unsentBytes.
	groupFull = 64 << 10
	// keepBuffer is how large a buffer may be to be used again.
	keepBuffer = 64 << 10
	// lentFrom is how much of the buffer a former member shares instead of having a
	// copy: little must not hold much.
	lentFrom = 8 << 10
)

// write implements outlet.
func (g *group) write(p []byte) { g.payload = append(g.payload, p...) }

// seal makes a chunk of what was said.
func (g *group) seal() bool {
	if len(g.payload) == 0 {
		return false
	}
	sent := g.payload
	if g.gzip {
		sent = g.compress()
	}
	g.buffer = appendChunkHead(g.buffer, len(sent))
	g.buffer = append(append(g.buffer, sent...), chunkEnd...)
	g.said += len(sent)
	g.payload = g.payload[:0]
	g.behind = len(g.members)
	return true
}

// compress returns the payload as a piece of every member's gzip stream.
func (g *group) compress() []byte {
	p := deflate.Compress([][]byte{g.payload})
	g.sum = g.sum.Then(p.Sum)
	g.g.metrics.compressed(len(g.payload)*len(g.members), len(p.Bytes)*len(g.members))
	return p.Bytes
}

func (g *group) end() uint64 { return g.base + uint64(len(g.buffer)) }

// near says whether what is new is little enough to be said to all at once.
func (g *group) near() bool {
	for i := range g.follows {
		if !g.follows[i].sub.Near() || isMuch(g.follows[i].sub) {
			return false
		}
	}
	return true
}

// advance says what is new, in one write if it piled up; false: not all of it, since
// the members are too far behind. What is new must be near.
func (g *group) advance(now time.Time) (all bool) {
	if len(g.buffer) >= groupFull {
		return false
	}
	for g.turn(g) && g.near() {
	}
	g.publish(now)
	return true
}

// publish is for all members what a flush is for one stream.
func (g *group) publish(now time.Time) {
	g.bookmarks(now, g)
	if len(g.payload) == 0 && !now.Before(g.heartbeatAt()) {
		g.write(g.framing.heartbeat())
	}
	if !g.seal() {
		return
	}
	g.oldest = earlier(g.oldest, g.committed)
	g.committed = time.Time{} // it is measured when it is written
	g.flushed(now, g.said, nil)
}

// written follows a write of everything to the last member that was behind.
func (g *group) written() {
	g.base += uint64(len(g.buffer))
	g.buffer = g.buffer[:0]
	if g.lent || cap(g.buffer) > keepBuffer {
		g.buffer, g.lent = nil, false
	}
	if cap(g.payload) > keepBuffer {
		g.payload = nil
	}
	g.oldest = time.Time{}
}

// beside says whether a stream could join: it has what all members have.
func (g *group) beside(l *lone) bool {
	for i := range g.follows {
		if !g.follows[i].sub.Beside(l.follows[i].sub) {
			return false
		}
	}
	return true
}

// enroll makes slot a member that has everything.
func (g *group) enroll(t *table, at int32) {
	s := &t.slots[at]
	s.group, s.place, s.sent = g.index, int32(len(g.members)), g.end()
	g.members = append(g.members, at)
	g.standFor(len(g.members))
}

// dismiss takes a member out.
func (g *group) dismiss(t *table, at int32) {
	s := &t.slots[at]
	if s.sent != g.end() {
		g.behind--
	}
	last := len(g.members) - 1
	moved := g.members[last]
	g.members[s.place] = moved
	t.slots[moved].place = s.place
	g.members = g.members[:last]
	s.group = lonely
	g.standFor(last)
	if g.behind == 0 {
		g.written()
	}
}

func (g *group) standFor(members int) {
	g.stands = members
	for i := range g.follows {
		g.follows[i].sub.StandFor(members)
	}
}

// rest is what a member has not been written. Where many leave at once with much,
// they share it.
func (g *group) rest(s *slot) []byte {
	rest := g.buffer[s.sent-g.base:]
	if len(rest) < lentFrom {
		return slices.Clone(rest)
	}
	g.lent = true
	return rest[:len(rest):len(rest)]
}

// groupKey names what streams have in common that can be members of one group.
func (c *conversation) groupKey() string {
	key := strconv.AppendBool([]byte(c.transport()), c.gzip)
	for i, w := range c.watches {
		key = append(append(append(key, 0), w.name...), 0)
		key = append(key, c.watches[i].prefix...)
	}
	return string(key)
}
