package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/stream"
)

const (
	// gatherFor is how long a request waits for others that may join. Watches
	// start together, and reconnect together after their back-off.
	gatherFor = 50 * time.Millisecond
	// leaveAfter is how long a watch without readers is still received: a reader
	// may return immediately.
	leaveAfter = time.Second
	// maxQuery is how long the query of a shared request may be, in bytes. Proxies
	// commonly take 8 KiB for the whole line.
	maxQuery = 6 << 10
)

// errChanged ends a request that has to be repeated with other members.
var errChanged = errors.New("the members of the request have changed")

// connection makes one request after the other for its members, one at a time.
// It ends when the upstream is lost, and with its last member.
type connection struct {
	// Static after construction.
	upstream *Upstream
	alone    bool          // for one member only
	done     chan struct{} // closed when run has returned
	changed  chan struct{} // there may be more members, or none

	// Guarded by upstream.mu.
	members []*member
	over    bool
	cancel  context.CancelCauseFunc // of the current request; nil: there is none
	redo    *time.Timer             // of the current request; nil: it is not to be repeated
	redoAt  time.Time

	// Owned by run.
	removed bool     // the last request ended since some watch was removed
	unknown []string // parameters that were refused since the last stream: the upstream, or this replica of it, is older
}

// newConnection returns one with its first member. upstream.mu is held.
func newConnection(u *Upstream, m *member) *connection {
	return &connection{
		upstream: u, alone: m.alone, done: make(chan struct{}), changed: make(chan struct{}, 1),
		members: []*member{m},
	}
}

// takes reports whether a member can join: an id must have room for the position
// of each watch, the query for each definition, and each watch can be named once.
// upstream.mu is held.
func (c *connection) takes(m *member) bool {
	if c.alone || m.alone {
		return false
	}
	length, query := stream.LongestPosition(m.source.watch), m.source.query
	for _, other := range c.members {
		if other.source.watch == m.source.watch {
			return false
		}
		length += len(",") + stream.LongestPosition(other.source.watch)
		query += len("&") + other.source.query
	}
	return length <= stream.MaxPositionLength && query <= maxQuery
}

// add adds a member. upstream.mu is held.
func (c *connection) add(m *member) {
	c.members = append(c.members, m)
	wait := gatherFor
	if c.upstream.completeLocked() {
		wait = 0
	}
	c.redoLocked(wait)
}

// leave removes an ended member. If this was the last one, it returns once the
// connection has no goroutine left.
func (c *connection) leave(m *member) {
	if c.drop(m) {
		<-c.done
	}
}

// drop removes a member and reports whether the connection is over.
func (c *connection) drop(m *member) (over bool) {
	c.upstream.mu.Lock()
	defer c.upstream.mu.Unlock()
	before := len(c.members)
	c.members = slices.DeleteFunc(c.members, func(o *member) bool { return o == m })
	switch {
	case len(c.members) == before:
	case len(c.members) == 0:
		c.endLocked()
	default:
		c.redoLocked(leaveAfter)
	}
	return c.over
}

// endLocked closes the connection for new members. upstream.mu is held.
func (c *connection) endLocked() {
	c.over = true
	c.upstream.forgetLocked(c)
	c.redoLocked(0)
}

// redoLocked has the request repeated, at the latest after a time.
// upstream.mu is held.
func (c *connection) redoLocked(after time.Duration) {
	select {
	case c.changed <- struct{}{}:
	default:
	}
	at := time.Now().Add(after)
	switch cancel := c.cancel; {
	case cancel == nil: // the next request is to come
	case after <= 0:
		cancel(errChanged)
	case c.redo == nil:
		c.redo, c.redoAt = time.AfterFunc(after, func() { cancel(errChanged) }), at
	case at.Before(c.redoAt):
		c.redo.Reset(after)
		c.redoAt = at
	}
}

// run makes requests until the connection is over.
func (c *connection) run() {
	defer close(c.done)
	for {
		c.gather()
		ctx, members := c.begin()
		if len(members) == 0 {
			return
		}
		c.settle(members, c.request(ctx, members))
	}
}

// gather waits for others that may join.
func (c *connection) gather() {
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	for !c.gathered() {
		select {
		case <-c.changed:
		case <-timer.C:
			return
		}
	}
}

func (c *connection) gathered() bool {
	c.upstream.mu.Lock()
	defer c.upstream.mu.Unlock()
	return c.over || c.alone || c.upstream.completeLocked()
}

// begin takes the members of the next request.
func (c *connection) begin() (context.Context, []*member) {
	c.upstream.mu.Lock()
	defer c.upstream.mu.Unlock()
	if c.over {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c.cancel = cancel
	return ctx, slices.Clone(c.members)
}

// settle examines how a request has ended: the connection continues without the
// member at fault, or ends for all of them.
func (c *connection) settle(members []*member, end client.Ending) {
	c.finish(end)
	if end.Greeted {
		c.unknown = nil // the next stream may be one of another replica, or of a newer version
	}
	var refused *client.Problem
	if errors.As(end.Err, &refused) {
		if c.isOlder(refused) {
			return
		}
		if m := memberOf(members, aboutWatch(refused)); m != nil {
			c.expel(m, end.Err)
			return
		}
	}
	removed := end.Goodbye != nil && end.Goodbye.Reason == client.GoodbyeWatchRemoved
	if errors.Is(end.Err, errChanged) || removed && !c.removed && len(members) > 1 {
		// The next request's refusal names the one that was removed.
		c.removed = removed
		return
	}
	c.fail(end)
}

// isOlder records that the upstream does not know a parameter, if that is what it says. The
// request is then repeated without it.
func (c *connection) isOlder(refused *client.Problem) bool {
	parameter := refused.Parameter
	if parameter == digestParameter {
		parameter = resumeParameter
	}
	if refused.Status != http.StatusBadRequest || parameter != deletesParameter && parameter != resumeParameter || slices.Contains(c.unknown, parameter) {
		return false
	}
	c.unknown = append(c.unknown, parameter)
	return true
}

// finish cleans up after the request.
func (c *connection) finish(end client.Ending) {
	c.upstream.mu.Lock()
	defer c.upstream.mu.Unlock()
	if c.redo != nil {
		c.redo.Stop()
	}
	c.cancel(nil)
	c.cancel, c.redo = nil, nil
	if end.Retry > 0 {
		c.upstream.retry = end.Retry
	}
}

// aboutWatch returns the name of the watch that a refusal is about; empty: none, or
// several. A parameter that narrows a watch ends with its name.
func aboutWatch(refused *client.Problem) string {
	if refused.Watch != "" || refused.Status != http.StatusBadRequest {
		return refused.Watch
	}
	_, watch, _ := strings.Cut(refused.Parameter, ".")
	return watch
}

func memberOf(members []*member, watch string) *member {
	at := slices.IndexFunc(members, func(m *member) bool { return m.source.watch == watch })
	if at < 0 {
		return nil
	}
	return members[at]
}

// expel ends one member.
func (c *connection) expel(m *member, err error) {
	c.drop(m)
	m.end(m.source.failed(err), true)
}

// fail ends every member: the upstream is lost.
func (c *connection) fail(end client.Ending) {
	c.upstream.mu.Lock()
	members := c.members
	c.members = nil
	c.endLocked()
	c.upstream.notBefore = time.Now().Add(c.upstream.patience(end))
	c.upstream.mu.Unlock()
	for _, m := range members {
		m.end(m.source.lost(end), false)
	}
}
