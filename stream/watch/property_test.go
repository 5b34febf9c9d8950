package watch_test

import (
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// TestGuaranteesHold plays random histories: an upstream that commits, forgets, and
// is restored; two replicas of the gateway, each with its own log, that lose the
// upstream, meet a part of it that is behind, are cut off during a snapshot, and
// restart; subscribers that join, read slowly, are cut off during a flush, and come
// back with any id that was ever sent, to either replica. At the end each id is
// tried once more at both. Then every checker of streamtest must hold.
//
// -rapid.checks=N plays N histories, -rapid.seed=S those of a seed.
func TestGuaranteesHold(t *testing.T) {
	eventCounts := newEventCounts()
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			w := newWorld(rt, eventCounts)
			defer w.close()
			for range 3 {
				rt.Repeat(w.actions())
			}
			w.finish()
		})
	})
	eventCounts.report(t)
}

// actions are what may happen, by name; those with a number are more likely.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":                   func(*rapid.T) { w.settle() },
		"commit":             w.commit,
		"commit 2":           w.commit,
		"commit 3":           w.commit,
		"commit 4":           w.commit,
		"churn 2":            w.churn,
		"churn":              w.churn,
		"catch up":           w.catchUp,
		"catch up 2":         w.catchUp,
		"disconnect":         w.disconnect,
		"refuse":             w.refuse,
		"accept":             w.accept,
		"fall back":          w.fallBack,
		"cut snapshot":       w.cutSnapshot,
		"compact":            w.compact,
		"say":                w.say,
		"restore":            w.restore,
		"restore by stealth": w.restoreByStealth,
		"restart":            w.restart,
		"pass time":          w.passTime,
		"join":               w.join,
		"resume":             w.resume,
		"resume 2":           w.resume,
		"cut":                w.cut,
		"read slowly":        w.readSlowly,
		"read slowly 2":      w.readSlowly,
		"leave":              w.leave,
		"take versions":      w.takeVersions,
		"take versions 2":    w.takeVersions,
	}
}

// commit makes one transaction.
func (w *world) commit(t *rapid.T) {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 1, 4, rapid.ID).Draw(t, "keys")
	var writes []streamtest.Write
	for _, key := range keys {
		remove := rapid.IntRange(0, 2).Draw(t, "delete") == 0
		writes = append(writes, streamtest.Write{Key: key, Value: w.value(), Delete: remove})
	}
	w.upstream.Commit(uint64(rapid.IntRange(1, 3).Draw(t, "step")), writes...)
	w.catchSome(t)
}

// churn writes the same few keys again and again, so much that segments are
// rewritten and slow readers fall behind.
func (w *world) churn(t *rapid.T) {
	if !w.heavy {
		t.Skip("light history")
	}
	if rapid.Bool().Draw(t, "from where it is") {
		w.readAll()
	}
	for i := range rapid.IntRange(20, 80).Draw(t, "commits") {
		key := keys[i%3]
		w.upstream.Commit(1, streamtest.Write{Key: key, Value: w.value(), Delete: i%10 == 9})
	}
	w.catchSome(t)
}

// catchSome lets the endpoints see what was committed, or not.
func (w *world) catchSome(t *rapid.T) {
	for _, g := range w.gateways {
		if rapid.IntRange(0, 3).Draw(t, "sees it") > 0 {
			g.endpoint.Catch(-1)
		}
	}
}

func (w *world) catchUp(t *rapid.T) {
	w.gateway(t).endpoint.Catch(rapid.IntRange(-1, 5).Draw(t, "transactions"))
}

func (w *world) disconnect(t *rapid.T) {
	errs := []error{nil, streamtest.ErrCut}
	if w.patchy {
		errs = append(errs, stream.ErrUnresumable)
	}
	w.gateway(t).endpoint.Disconnect(rapid.SampledFrom(errs).Draw(t, "error"))
	w.eventCounts.add("upstream lost")
}

func (w *world) refuse(t *rapid.T) {
	w.gateway(t).endpoint.Refuse(fmt.Errorf("connection refused"))
	w.eventCounts.add("upstream lost")
}

func (w *world) accept(t *rapid.T) { w.gateway(t).endpoint.Refuse(nil) }

func (w *world) fallBack(t *rapid.T) {
	w.needGaps(t)
	w.gateway(t).endpoint.FallBack(rapid.IntRange(1, 10).Draw(t, "transactions"))
	w.eventCounts.add("upstream fell back")
}

func (w *world) cutSnapshot(t *rapid.T) {
	w.needGaps(t)
	g := w.gateway(t)
	g.endpoint.CutSnapshot(rapid.IntRange(0, 8).Draw(t, "resources"))
	g.endpoint.Compact()
	g.endpoint.Disconnect(stream.ErrUnresumable)
	w.eventCounts.add("snapshot cut")
}

func (w *world) compact(t *rapid.T) {
	w.needGaps(t)
	w.gateway(t).endpoint.Compact()
}

// needGaps skips what makes replicas miss a part of history.
func (w *world) needGaps(t *rapid.T) {
	if !w.patchy {
		t.Skip("history without gaps")
	}
}

func (w *world) say(t *rapid.T) {
	state := rapid.SampledFrom([]stream.State{stream.InSync, stream.Stale, stream.Resyncing}).Draw(t, "state")
	w.gateway(t).endpoint.Say(state, "says the upstream")
}

// restore takes the upstream back to an older state under a new name.
func (w *world) restore(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("not now")
	}
	oldest, head := w.upstream.Oldest(), w.upstream.Revision()
	w.restores++
	w.upstream.Restore(fmt.Sprintf("e%d", w.restores), uint64(rapid.IntRange(int(oldest), int(head)).Draw(t, "revision")))
	for _, g := range w.gateways {
		g.endpoint.Move()
	}
	w.eventCounts.add("restore, new epoch")
}

// restoreByStealth takes the upstream back under the same name, which is not
// allowed: the gateway has to find out. It can, while the upstream stays behind what
// was served.
func (w *world) restoreByStealth(t *rapid.T) {
	oldest, head := w.upstream.Oldest(), w.upstream.Revision()
	if oldest == head || rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		t.Skip("not now")
	}
	w.level()
	epoch, _ := w.upstream.Truth().Newest()
	w.upstream.Restore(epoch, uint64(rapid.IntRange(int(oldest), int(head)-1).Draw(t, "revision")))
	w.stealth = true
	w.level()
	w.eventCounts.add("restore, same epoch")
}

// restart replaces a gateway with a new one that knows nothing.
func (w *world) restart(t *rapid.T) {
	if w.stealth {
		t.Skip("a gateway that remembers nothing cannot notice a stealthy restore")
	}
	w.gateway(t).restart()
	w.eventCounts.add("gateway restarted")
}

func (w *world) passTime(t *rapid.T) {
	w.advance(rapid.SampledFrom([]int{1, 2, 4, 7, 15}).Draw(t, "seconds"))
}

func (w *world) join(t *rapid.T) {
	if len(w.clients) >= 6 {
		t.Skip("enough clients")
	}
	c := &client{
		name:  fmt.Sprintf("c%d", len(w.clients)),
		slow:  rapid.Bool().Draw(t, "slow"),
		holds: rapid.Bool().Draw(t, "applies at ids"),
	}
	w.clients = append(w.clients, c)
	w.dial(c, w.gateway(t), nil, nil)
}

// resume brings a client back, either with any id ever sent and the
// state held at that id, or with its own last id and state.
func (w *world) resume(t *rapid.T) {
	c := w.client(t)
	w.hangUp(c)
	g := w.gateway(t)
	marks := w.marks
	if len(marks) == 0 || c.last != nil && rapid.Bool().Draw(t, "own id") {
		w.dial(c, g, c.last, c.held)
		return
	}
	m := marks[rapid.IntRange(0, len(marks)-1).Draw(t, "id")]
	w.dial(c, g, m, nil)
}

// cut breaks the connection of a client during a flush.
func (w *world) cut(t *rapid.T) {
	c := w.client(t)
	n := rapid.IntRange(0, 6).Draw(t, "events")
	if !c.up() {
		w.dial(c, w.gateway(t), c.last, c.held)
	}
	c.conn.CutAfter(n)
	w.hangUp(c)
	w.eventCounts.add("flush cut")
}

func (w *world) readSlowly(t *rapid.T) {
	c := w.client(t)
	if !c.up() {
		w.dial(c, w.gateway(t), c.last, c.held)
	}
	for range rapid.IntRange(1, 3).Draw(t, "flushes") {
		w.step(c)
	}
}

// takeVersions makes readers in a walk continue in a newer version, which may
// differ.
func (w *world) takeVersions(t *rapid.T) {
	w.readSlowly(t)
	if rapid.Bool().Draw(t, "change") {
		w.commit(t)
	}
	for _, g := range w.gateways {
		g.watch.TakeVersions()
	}
}

func (w *world) leave(t *rapid.T) { w.hangUp(w.client(t)) }

func (w *world) gateway(t *rapid.T) *gateway {
	return w.gateways[rapid.IntRange(0, len(w.gateways)-1).Draw(t, "gateway")]
}

func (w *world) client(t *rapid.T) *client {
	if len(w.clients) == 0 {
		t.Skip("no client yet")
	}
	return w.clients[rapid.IntRange(0, len(w.clients)-1).Draw(t, "client")]
}
