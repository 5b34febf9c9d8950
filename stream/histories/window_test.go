package histories

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// windowCase is a window, and how the model sorts.
type windowCase struct {
	params  view.Params
	compare func(a, b stream.Resource) int
	after   string // the key behind whose place it begins, in place of an offset; its value has no members
}

// windowCases are full, partly full, in the middle, behind a place, and of a view.
var windowCases = []windowCase{
	{params: view.Params{Order: "-n", Limit: "3"}, compare: func(a, b stream.Resource) int { return cmp.Compare(memberN(b), memberN(a)) }},
	{params: view.Params{Order: "n", Limit: "2", Offset: "1", Filter: `value.n % 2 == 0`}, compare: func(a, b stream.Resource) int { return cmp.Compare(memberN(a), memberN(b)) }},
	{params: view.Params{Order: "third", Limit: "2"}, compare: byKey, after: "a/2"},
	{params: view.Params{Prefix: "a/", Order: "-n", Limit: "1", Fields: []string{"n"}}, compare: func(a, b stream.Resource) int { return cmp.Compare(memberN(b), memberN(a)) }},
}

// byKey leaves the order to the keys.
func byKey(stream.Resource, stream.Resource) int { return 0 }

// memberN returns the member n of a value.
func memberN(r stream.Resource) int {
	var value struct{ N int }
	if err := json.Unmarshal(r.Value, &value); err != nil {
		panic(err) // every value has it
	}
	return value.N
}

// newWindows returns the windows of the watch with which clients begin.
func (w *world) newWindows() (parts []*part) {
	for i, c := range windowCases {
		var after *stream.Resource
		if c.after != "" {
			after = &stream.Resource{Key: c.after, Value: []byte("{}")}
		}
		p := w.newWindow(i, c.params, after)
		p.name = "window " + c.params.Prefix + c.params.Filter + " by " + c.params.Order
		parts = append(parts, p)
	}
	return parts
}

// newWindow returns a window of a case, with another place.
func (w *world) newWindow(of int, params view.Params, after *stream.Resource) *part {
	p := &part{history: w.newHistory(), seen: map[given]bool{}, windowOf: of}
	p.history.Window, p.sorting = true, &streamtest.Sorting{Compare: windowCases[of].compare, After: after}
	if after != nil {
		d := parsed(params)
		params.After = d.Cursor(string(d.AppendSortKey(nil, *after)) + after.Key)
	}
	p.params, p.definition = params, parsed(params)
	p.name = fmt.Sprintf("window %s%s by %s, %s after %s%s", params.Prefix, params.Filter, params.Order, params.Limit, params.Offset, params.After)
	return p
}

// anotherWindow draws a window of the same order, which may be the same.
func (w *world) anotherWindow(p *part) *part {
	params := windowCases[p.windowOf].params
	params.Offset, params.Limit = strconv.Itoa(w.pick(5)), strconv.Itoa(1+w.pick(4))
	var after *stream.Resource
	if w.rarely(3) {
		params.Offset = ""
		after = &stream.Resource{Key: keys[w.pick(len(keys))], Value: []byte("{}")}
		if params.Order != "third" {
			after.Value = fmt.Appendf(nil, `{"n":%d}`, w.pick(w.values+2))
		}
	}
	next := w.newWindow(p.windowOf, params, after)
	for _, known := range w.windows {
		if known.definition.ID() == next.definition.ID() {
			return known
		}
	}
	w.windows = append(w.windows, next)
	return next
}

// names reports whether positions of the part have an epoch, of those that nodes have served.
func (w *world) names(p *part, epoch string) bool {
	return slices.ContainsFunc(w.served, func(served string) bool { return stream.CanonicalEpoch(p.definition.Epoch(served)) == epoch })
}

// slide makes the window of a client another one, while its stream goes on.
func (w *world) slide() error {
	if c := w.windowed(); c != nil {
		w.slideOf(c)
	}
	return nil
}

// windowed returns a client that follows a window; nil: there is none.
func (w *world) windowed() *client {
	of := slices.DeleteFunc(slices.Clone(w.clients), func(c *client) bool { return !c.up() || c.part.sorting == nil })
	if len(of) == 0 {
		return nil
	}
	return of[w.pick(len(of))]
}

func (w *world) slideOf(c *client) {
	if !c.conn.CanMove() {
		return
	}
	to := w.anotherWindow(c.part)
	window := to.of(c.at)
	for range 3 { // a gateway waits for the window
		if synctest.Wait(); window.Status().State != stream.Priming {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !c.conn.CanMove() {
		return
	}
	c.note()
	c.moves++
	c.left = c.part
	c.conn = c.conn.Move(to.history, window, c.moves)
	c.part = to
	w.say("%s moves to %s", c.name, to.name)
	reached.add(1, "moves of windows that are asked for")
}

// slideTwice makes the window of a client another one, and then the former one, while more happens.
func (w *world) slideTwice() error {
	c := w.windowed()
	if c == nil {
		return nil
	}
	w.slideOf(c)
	if w.rarely(2) {
		c.step()
	}
	if err := w.commit(); err != nil {
		return err
	}
	w.root().endpoint.Catch(-1)
	synctest.Wait()
	w.slideOf(c)
	return nil
}

// slideAway lets a client be cut off in a move, and come back.
func (w *world) slideAway() error {
	c := w.windowed()
	if c == nil {
		return nil
	}
	w.root().endpoint.Catch(-1)
	w.settle()
	c.drain()
	w.slideOf(c)
	if w.rarely(3) {
		if err := w.commit(); err != nil {
			return err
		}
		w.root().endpoint.Catch(-1)
		synctest.Wait()
	}
	if !c.up() {
		return nil
	}
	after := w.pick(5)
	w.say("%s is cut off at %s after %d events of a move", c.name, c.at.name, after)
	c.cut(after)
	n := w.nodeOf(c.part)
	w.say("%s resumes at %s from %s", c.name, n.name, idText(c.last))
	c.dial(n, c.last, c.held)
	return nil
}

func parsed(p view.Params) *view.Definition {
	d, err := view.Parse(p)
	if err != nil {
		panic(err)
	}
	return d
}
