package gateway_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// tree has three levels of gateways: one that follows the upstream, three that
// follow it, and three behind each of these.
//
// Owned by the goroutine of its test, except for the writer.
type tree struct {
	t        *testing.T
	upstream *streamtest.Upstream
	endpoint *streamtest.Replica
	history  *streamtest.History
	nodes    []*branch // the root, the three, the nine
	readers  []*treeReader
	random   *rand.Rand

	wrote       chan struct{} // if the writer waits for it
	stopWriting context.CancelFunc
	writing     sync.WaitGroup
}

// branch is one gateway of a tree.
type branch struct {
	*node
	name   string
	parent *branch // nil: the root
	watch  *watch.Watch
	lives  int // how often it was started
}

// treeReader is a subscriber of a leaf. The connection belongs to its goroutine
// until stop has returned.
type treeReader struct {
	*streamtest.Connection
	leaf *branch
	stop func()
}

func newTree(t *testing.T, deletes streamtest.DeleteRevisions) *tree {
	upstream := streamtest.NewUpstream("e", deletes)
	tr := &tree{
		t: t, upstream: upstream, endpoint: upstream.Replica(), wrote: make(chan struct{}), random: rand.New(rand.NewPCG(3, 9)),
		history: &streamtest.History{
			Truth: upstream.Truth(), Heartbeat: 100 * time.Millisecond, DeletesUnnumbered: deletes != streamtest.OwnRevision,
		},
	}
	for range 50 {
		tr.write()
	}
	root := tr.grow(nil, "root")
	for i := range 3 {
		middle := tr.grow(root, fmt.Sprint("middle-", i))
		for j := range 3 {
			tr.grow(middle, fmt.Sprintf("leaf-%d-%d", i, j))
		}
	}
	return tr
}

func (tr *tree) grow(parent *branch, name string) *branch {
	b := &branch{node: newNode(tr.t), name: name, parent: parent}
	tr.nodes = append(tr.nodes, b)
	tr.start(b)
	return b
}

// start starts a gateway without any state.
func (tr *tree) start(b *branch) {
	tr.t.Helper()
	r := watch.NewRegistry()
	var s stream.Source = tr.endpoint
	if b.parent != nil {
		s = source(tr.t, b.parent.upstream(), "w", "")
	}
	b.watch = add(tr.t, r, "w", s)
	b.lives++
	b.start(r)
}

func (tr *tree) leaves() (out []*branch) {
	for _, b := range tr.nodes {
		if b.parent != nil && b.parent.parent != nil {
			out = append(out, b)
		}
	}
	return out
}

// write makes one transaction.
func (tr *tree) write() {
	var writes []streamtest.Write
	for range 1 + tr.random.IntN(3) {
		writes = append(writes, streamtest.Write{
			Key: fmt.Sprint("k", len(writes), "-", tr.random.IntN(20)), Value: streamtest.ValueOf(tr.random.Int()),
			Delete: tr.random.IntN(3) == 0,
		})
	}
	tr.upstream.Commit(1, writes...)
	tr.endpoint.Catch(-1)
}

// beginWriting writes until endWriting, in another goroutine, which owns
// the tree's random numbers meanwhile.
func (tr *tree) beginWriting() {
	ctx, stop := context.WithCancel(context.Background())
	tr.stopWriting = stop
	tr.writing.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tr.write()
			case <-ctx.Done():
				return
			}
			select {
			case tr.wrote <- struct{}{}:
			default:
			}
		}
	})
}

func (tr *tree) endWriting() {
	tr.stopWriting()
	tr.writing.Wait()
}

// read starts a subscriber of a leaf, or resumes it after an id.
func (tr *tree) read(leaf *branch, client string, from *streamtest.Mark) {
	c := tr.history.Connect(leaf.watch, streamtest.Dial{
		Client: client, Replica: fmt.Sprint(leaf.name, "/", leaf.lives), From: from, Slow: true,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	tr.readers = append(tr.readers, &treeReader{c, leaf, func() { cancel(); <-ended }})
}

// kill kills a gateway and restarts it while writing continues. Its readers
// reconnect to another one.
func (tr *tree) kill(b *branch) {
	tr.t.Helper()
	var homeless []*treeReader
	readers := tr.readers
	tr.readers = nil
	for _, r := range readers {
		if r.leaf != b {
			tr.readers = append(tr.readers, r)
			continue
		}
		r.stop()
		homeless = append(homeless, r)
	}
	b.kill()
	others := tr.leaves()
	for i, r := range homeless {
		at := others[i%len(others)]
		if at == b {
			at = others[(i+1)%len(others)]
		}
		tr.read(at, r.Client, last(r.Marks()))
	}
	for range 5 {
		<-tr.wrote
	}
	tr.start(b)
}

func last(marks []*streamtest.Mark) *streamtest.Mark {
	if len(marks) == 0 {
		return nil
	}
	return marks[len(marks)-1]
}

// converge waits until every gateway has the upstream's current state.
func (tr *tree) converge() {
	tr.t.Helper()
	revision := tr.upstream.Revision()
	epoch, _ := tr.upstream.Truth().Newest()
	for _, b := range tr.nodes {
		await(tr.t, b.watch, func() bool {
			return b.watch.Snapshot().Epoch() == epoch && b.watch.Snapshot().Revision() >= revision
		})
	}
}

// resumeEverywhere presents an id of one leaf to each of the others.
func (tr *tree) resumeEverywhere(leaf *branch) {
	tr.t.Helper()
	first := tr.visit(leaf, nil, "taker")
	mark := last(first.Marks())
	tr.converge() // the state may have advanced by now, or not
	for _, other := range tr.leaves() {
		c := tr.visit(other, mark, "bringer")
		if got := c.Outcome(); got != log.OutcomeExact {
			tr.t.Errorf("%v of %s at %s: %s, want it resumed with the changes alone", mark.Position, leaf.name, other.name, got)
		}
	}
}

// visit subscribes until it has caught up.
func (tr *tree) visit(leaf *branch, from *streamtest.Mark, client string) *streamtest.Connection {
	tr.t.Helper()
	c := tr.history.Connect(leaf.watch, streamtest.Dial{
		Client: client, Replica: fmt.Sprint(leaf.name, "/", leaf.lives), From: from, Slow: true,
	})
	defer c.Close()
	timeout := time.NewTimer(10 * time.Second)
	defer timeout.Stop()
	for c.Drain(); !c.Synced(); c.Drain() {
		select {
		case <-c.Changed():
		case <-timeout.C:
			tr.t.Fatalf("%v has not caught up after 10s", c)
		}
	}
	return c
}

// settle ends everything and checks what every subscriber received.
func (tr *tree) settle() {
	tr.t.Helper()
	tr.converge()
	for _, r := range tr.readers {
		r.stop()
		if err := r.CheckBytes(); err != nil {
			tr.t.Error(err)
		}
		tr.holdsAll(tr.visit(r.leaf, last(r.Marks()), r.Client))
	}
	for _, b := range tr.leaves() {
		tr.holdsAll(tr.visit(b, nil, "last"))
	}
	if err := streamtest.CheckAll(tr.history); err != nil {
		tr.t.Error(err)
	}
}

func (tr *tree) holdsAll(c *streamtest.Connection) {
	tr.t.Helper()
	if diff := c.State().Diff(tr.upstream.State()); diff != "" {
		tr.t.Errorf("%v: not the upstream's state: %s", c, diff)
	}
}
