package shard

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/log"
)

// group is many streams of the same watches, in the same format, that are all up to
// date: they get the same bytes, rendered once.
//
// Owned by one shard.
type group struct {
	session.Session // for all members; its subscriptions are the cursors of cohorts

	key     string
	members []int32 // slots
	index   int32
	text    session.Text
	encoder session.Encoder // the text

	splits bool // its members continue on their own, one after the other
	queued bool // for a turn
	beats  bool // it was found in a round of heartbeats, perhaps early
	lent   bool // former members read buffer too, so it must not be reused

	room   *room    // shared by the groups of the shard
	said   int      // bytes of all chunks so far, without their heads
	sum    wire.Sum // of all payloads, if gzip; each member keeps its own difference
	buffer []byte   // complete chunks that are not yet written to all members; nil: none
	base   uint64   // bytes before buffer
	behind int      // members to which not everything is written yet
	at     int      // the member that was last written to

	oldest introspection.Moment // commit in buffer
	looked int64                // when the shard looks at it even without news, see introspection.Nanos; 0: it does not
}

// room has the buffers in which the groups of a shard render. A group takes a buffer until
// everything is written, and has none while there is no news.
//
// Owned by one shard.
type room struct {
	payload []byte // of the chunk that is being written, uncompressed
	spare   []byte // an empty buffer; nil: a group has it
}

const (
	// groupFull is the most that is rendered before everything is written to
	// all members: no more than a connection takes at once, see unsentBytes.
	groupFull = 64 << 10
	// keepBuffer is the largest size of a buffer that is reused.
	keepBuffer = 64 << 10
	// lentFrom is how much of the buffer a former member must need to share it
	// instead of copying it: a small rest must not keep a large buffer alive.
	lentFrom = 8 << 10
)

// newGroup returns a group without members at the position of l.
func newGroup(l *unsharedStream) *group {
	g := &group{key: l.key, room: l.shard.room}
	g.Session = l.Fork(func(i int) *log.Subscription { return log.NewCohort(l.Follows[i].Sub).Cursor() })
	g.text = session.UncompressedText(&g.Session, g)
	g.encoder = &g.text
	g.Turns = false // it is as far as its watches, and never has much to look at
	return g
}

// cohort is the members as readers of one of their watches.
func (g *group) cohort(i int) log.Cohort { return log.CohortOf(g.Follows[i].Sub) }

// forkMember returns the session of a member that continues on its own.
func (g *group) forkMember() session.Session {
	c := g.Fork(func(i int) *log.Subscription { return g.cohort(i).Fork() })
	c.Own = &session.Own{}
	return c
}

// Write implements wire.Outlet.
func (g *group) Write(p []byte) { g.room.payload = append(g.room.payload, p...) }

// seal makes a chunk of the open payload.
func (g *group) seal() bool {
	payload := g.room.payload
	if len(payload) == 0 {
		return false
	}
	sent := payload
	if g.Gzip {
		sent = g.compress(payload)
	}
	if g.buffer == nil {
		g.buffer, g.room.spare = g.room.spare, nil
	}
	g.buffer = wire.AppendChunkHead(g.buffer, len(sent))
	g.buffer = append(append(g.buffer, sent...), wire.ChunkEnd...)
	g.said += len(sent)
	g.room.payload = payload[:0]
	if cap(payload) > keepBuffer {
		g.room.payload = nil
	}
	g.behind = len(g.members)
	return true
}

// compress returns the payload as a piece of every member's gzip stream.
func (g *group) compress(payload []byte) []byte {
	p := wire.Compress([][]byte{payload})
	g.sum = g.sum.Then(p.Sum)
	g.Deps.Metrics.Compressed(len(payload)*len(g.members), len(p.Bytes)*len(g.members))
	return p.Bytes
}

func (g *group) end() uint64 { return g.base + uint64(len(g.buffer)) }

// near reports whether the news is small enough to be rendered for all at once.
func (g *group) near() bool {
	for i := range g.Follows {
		if !g.cohort(i).NearHead() || limits.IsMuch(g.Follows[i].Sub) {
			return false
		}
	}
	return true
}

// advance renders the news, in one write if it piled up. It returns false if it did
// not render all of it, since the members are too far behind, or since changes keep coming.
// The news must be near.
func (g *group) advance(now time.Time) (all bool) {
	if len(g.buffer) >= groupFull {
		return false
	}
	if g.behind == 0 {
		g.MarkFlushed()
	}
	full := false
	for !full && g.Turn(g.encoder) && g.near() {
		full = len(g.room.payload) >= groupFull
	}
	g.publish(now)
	return !full
}

// publish does for all members what a flush does for one stream.
func (g *group) publish(now time.Time) {
	due := now
	if g.beats {
		due, g.beats = now.Add(g.early()), false
	}
	g.Bookmarks(due, g.encoder)
	if len(g.room.payload) == 0 && !due.Before(g.HeartbeatAt()) {
		g.text.WriteHeartbeat()
	}
	if !g.seal() {
		return
	}
	g.oldest = g.oldest.Earlier(g.Committed)
	g.Committed = introspection.Moment{} // it is measured when it is written
	g.Flushed(now, g.said, nil)
}

// early is how long before it is due a heartbeat may be sent, together with those of other
// groups.
func (g *group) early() time.Duration { return g.Deps.Heartbeat / 10 }

// written is called once no member is behind.
func (g *group) written() {
	g.base += uint64(len(g.buffer))
	if !g.lent && cap(g.buffer) <= keepBuffer && cap(g.buffer) > cap(g.room.spare) {
		g.room.spare = g.buffer[:0]
	}
	g.buffer, g.lent = nil, false
	g.oldest = introspection.Moment{}
}

// beside reports whether a stream could join: it is at the same position as the
// members.
func (g *group) beside(l *unsharedStream) bool {
	for i := range g.Follows {
		if !g.cohort(i).Admits(l.Follows[i].Sub) {
			return false
		}
	}
	return true
}

// enroll makes slot an up-to-date member.
func (g *group) enroll(t *table, at int32) {
	s := &t.slots[at]
	s.kind, s.group, s.place, s.sent = memberSlot, g.index, int32(len(g.members)), g.end()
	g.members = append(g.members, at)
	g.setMembers(len(g.members))
}

// dismiss removes a member.
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
	s.kind = unsharedSlot
	g.setMembers(last)
	if g.behind == 0 {
		g.written()
	}
}

func (g *group) setMembers(members int) {
	g.Streams = members
	for i := range g.Follows {
		g.cohort(i).SetMembers(members)
	}
}

// rest returns the bytes not yet written to a member. If many members are detached
// at once with much left, they share it.
func (g *group) rest(s *slot) []byte {
	rest := g.buffer[s.sent-g.base:]
	if len(rest) < lentFrom {
		return slices.Clone(rest)
	}
	g.lent = true
	return rest[:len(rest):len(rest)]
}
