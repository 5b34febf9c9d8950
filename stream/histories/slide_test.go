package histories

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

// slides are the moves of the window of a stream over a network.
type slides struct {
	stream string           // its name
	to     map[uint64]*part // where it moves, by the numbers of the moves that have not arrived
	whole  bool             // since the first of them, the client has all of the window that it has

	request *answer // for a move; nil: there is none
	way     *link   // on which that is sent
	target  *part   // where that is to
}

// window returns what the client has of a window; nil: it follows none.
func (c *wire) window() *follow {
	if i := slices.IndexFunc(c.follows, func(f *follow) bool { return f.part.sorting != nil }); i >= 0 {
		return c.follows[i]
	}
	return nil
}

// slideWire makes the window of a client beyond a network another one, while its stream goes on.
func (w *world) slideWire() error {
	c := w.wire()
	if c == nil || !c.up() || c.polls || c.request != nil || c.stream == "" || c.window() == nil {
		return nil
	}
	if w.rarely(2) {
		w.root().endpoint.Catch(-1)
		w.settle()
		if !c.up() {
			return nil
		}
	}
	f := c.window()
	if len(c.to) == 0 {
		c.whole = c.has(f)
	}
	c.target, c.way = w.anotherWindow(f.part), newLink(c.name, []*node{c.at})
	p := c.target.params
	q := url.Values{"limit": {p.Limit}}
	if p.After != "" {
		q.Set("after", p.After)
	} else {
		q.Set("offset", p.Offset)
	}
	if len(c.follows) > 1 {
		reached.add(1, "moves of windows in streams of two watches")
		if w.rarely(2) {
			q.Set("watch", f.part.watchName())
		}
	}
	w.say("%s asks %s to move to %s", c.name, c.at.name, c.target.name)
	reached.add(1, "moves of windows that are asked for over HTTP")
	c.request = send(http.MethodPost, "http://"+c.way.host+"/v1/streams/"+c.stream+"/window?"+q.Encode(), nil)
	if w.rarely(2) {
		c.link.stall(w.pick(20) * 50)
	}
	return nil
}

// has reports whether a client has all of its window.
func (c *wire) has(f *follow) bool {
	return c.link.flows() && len(f.pending) == 0 && f.last != nil && !f.last.Position.Partial() && f.last.Position.AsOf == c.at.watch.Snapshot().Revision() &&
		f.part.history.Window && !f.part.history.DeletesUnnumbered && c.world.names(f.part, f.last.Position.Epoch)
}

// slid reads the answer to a move. While it is to come, nothing is read of the stream: what it says later is of the
// windows that are known then.
func (c *wire) slid() (waits bool, err error) {
	if c.request == nil {
		return false, nil
	}
	if !c.request.over() {
		c.whole = false // something may change before it moves
		return true, nil
	}
	lines, status, ended := c.request.take()
	target := c.target
	c.endSlide()
	var of struct{ Move uint64 }
	switch {
	case status == 200 && ended == io.EOF && len(lines) == 1:
		if err := json.Unmarshal(lines[0].text, &of); err != nil {
			return false, err
		}
		c.to[of.Move] = target
	case status == 0, status == 200:
		c.hangUp() // it is not known whether it moves
		return true, nil
	case status != 404 && status != 429 && status != 503:
		return false, fmt.Errorf("%s is answered with status %d when it moves to %s", c.name, status, target.name)
	}
	return false, nil
}

// endSlide ends the request for a move.
func (c *wire) endSlide() {
	if c.request != nil {
		c.request.cancel()
		c.way.cut()
		links.Delete(c.way.host)
		c.request, c.way, c.target = nil, nil, nil
	}
}

// arrive makes the client have another window, if an id is of that: after the difference, or a reset.
func (c *wire) arrive(f *follow, p stream.Position) {
	if len(c.to) == 0 || f.part.sorting == nil {
		return
	}
	told, of := uint64(0), uint64(0) // the newest move that it is told of, and that of a difference
	for _, e := range f.pending {
		if told = max(told, e.Move); e.Type == stream.Bookmark && e.Move > 0 {
			of = e.Move
		}
	}
	if of == 0 && !c.world.names(f.part, p.Epoch) {
		for n, to := range c.to {
			if c.world.names(to, p.Epoch) && (of == 0 || n < of) { // of several moves to one window it may be each
				of = n
			}
		}
	}
	if next := c.to[of]; next != nil {
		reached.add(1, "moves of windows over HTTP")
		f.conn = f.conn.MoveRemote(next.history, of, c.whole && told == of)
		f.part, c.whole = next, false
	}
	maps.DeleteFunc(c.to, func(n uint64, _ *part) bool { return n <= max(of, told) })
}

// comeBack decides which window a client wants that was cut off while it moved: the newest, or the one that it has.
func (c *wire) comeBack() {
	f := c.window()
	if len(c.to) > 0 && !c.world.rarely(3) {
		f.part = c.to[slices.Max(slices.Collect(maps.Keys(c.to)))]
	}
	c.stream, c.to, c.whole = "", map[uint64]*part{}, false
}
