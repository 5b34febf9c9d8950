package histories

import (
	"fmt"
	"slices"
	"time"
)

// connectProgram starts a program.
func (w *world) connectProgram() error {
	if len(w.programs) >= w.shape.programs {
		return nil
	}
	p := &program{world: w, name: fmt.Sprint("program ", len(w.programs)), handsOver: w.rarely(2)}
	of, two := w.parts[0], p.handsOver && w.rarely(2)
	if w.shape.views && !two { // a view is one of all watches of a stream
		of = oneOf(w.choices, w.parts...)
	}
	targets := w.nodesWith(of)
	if len(targets) == 0 {
		return nil
	}
	p.copies = append(p.copies, &copied{part: of})
	if two {
		p.copies = append(p.copies, &copied{part: w.beside})
		targets = slices.DeleteFunc(targets, func(n *node) bool { return n.endpoint == nil }) // the other watch leaves the others
		if len(targets) == 0 {
			return nil
		}
	}
	for _, n := range targets {
		if err := n.reachable(); err != nil {
			return err
		}
	}
	p.link = newLink(p.name, targets)
	p.link.turns = w.rarely(2)
	w.programs = append(w.programs, p)
	w.say("%s follows %d watches (%s, hands over %t, nodes in turn %t)", p.name, len(p.copies), of.name, p.handsOver, p.link.turns)
	return p.begin()
}

// nodesWith returns the nodes that have a part, under the same parameters.
func (w *world) nodesWith(p *part) (have []*node) {
	for _, n := range w.nodes {
		if p.isAt(n) && n.narrow == (p.within != nil) {
			have = append(have, n)
		}
	}
	return have
}

// program returns a program; nil: there is none.
func (w *world) program() *program {
	if len(w.programs) == 0 {
		return nil
	}
	return w.programs[w.pick(len(w.programs))]
}

// disturb disturbs a program, its requests, or the way to its nodes.
func (w *world) disturb() error {
	if p := w.program(); p != nil {
		w.disturbOne(p)
	}
	return nil
}

func (w *world) disturbOne(p *program) {
	switch w.pick(8) {
	case 0, 1:
		p.link.cut()
		w.say("%s is cut off", p.name)
	case 2:
		bytes := 200 + w.pick(20)*100
		p.link.stall(bytes)
		w.say("%s reads %d bytes", p.name, bytes)
	case 3, 4:
		p.link.free()
		next, turns := w.pick(len(p.link.targets)), w.rarely(2)
		p.link.set(func() { p.link.target, p.link.turns = next, turns })
		w.say("the next request of %s goes to %s (nodes in turn %t)", p.name, p.link.targets[next].name, turns)
	case 5:
		p.disturb(w.pick(3), 1+w.pick(4), 0)
	case 6:
		p.disturb(w.pick(3), 0, 1+w.pick(30))
	case 7:
		p.link.set(func() { p.link.refuses = !p.link.refuses })
		w.say("connections of %s are refused: %t", p.name, p.link.refuses)
	}
}

// free lets a program and its requests through.
func (p *program) free() {
	p.link.set(func() { p.link.refuses = false })
	p.link.free()
	p.disturb(0, 0, 0)
}

// disturb has some requests for what differs answered. Then some are refused, and of some the state is gone.
func (p *program) disturb(answered, refused, gone int) {
	p.passes.Store(int32(answered))
	p.refusals.Store(int32(refused))
	p.gone.Store(int32(gone))
	p.world.say("%d requests of %s for what differs are answered, %d are refused, and the states of %d are gone", answered, p.name, refused, gone)
}

// mend brings a program back to nodes that have lost their history, or to another order, and lets the history go on while it
// finds out what differs.
func (w *world) mend() error {
	p := w.program()
	if p == nil {
		return nil
	}
	w.say("%s comes back where its position is not known", p.name)
	p.link.cut()
	for range w.pick(3) {
		if err := w.commit(); err != nil {
			return err
		}
	}
	if err := oneOf(w.choices, w.restart, w.restore, w.replace)(); err != nil {
		return err
	}
	p.link.set(func() { p.link.target += w.pick(2) })
	if w.rarely(2) {
		p.disturb(w.pick(4), 0, 9+w.pick(9)) // more than it asks again
	}
	for range 3 + w.pick(8) {
		w.advance(oneOf(w.choices, 100*time.Millisecond, 20*time.Millisecond, 300*time.Millisecond, time.Second, 3*time.Second, 11*time.Second))
		var err error
		switch w.pick(5) {
		case 1:
			err = w.commit()
		case 2:
			err = w.catchUp()
		case 3:
			w.disturbOne(p)
		case 4:
			p.free()
		}
		w.settle()
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitPrograms gives programs the time that they need to come back.
func (w *world) awaitPrograms() {
	behind := func(p *program) bool {
		return slices.ContainsFunc(p.copies, func(c *copied) bool {
			now, ok := c.now()
			return !ok || c.part.history.Settled && !c.newest(now)
		})
	}
	for _, p := range w.programs {
		p.free()
	}
	for range 180 {
		if !slices.ContainsFunc(w.programs, behind) {
			return
		}
		w.advance(time.Second)
	}
}
