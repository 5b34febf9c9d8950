package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream/watch"
)

// pair is a gateway, and one that follows it.
type pair struct {
	*replicas
	root     *node
	end      *streamtest.Replica
	at, leaf *watch.Watch
}

const pairSize = 3000

func newPair(t *testing.T, deletes streamtest.DeleteRevisions) *pair {
	return newPairWith(t, deletes, gateway.DigestOn)
}

// newPairWith returns a pair whose root has digests or not.
func newPairWith(t *testing.T, deletes streamtest.DeleteRevisions, digest gateway.Digest) *pair {
	p := &pair{replicas: &replicas{t: t, upstream: streamtest.NewUpstream("e", deletes)}, root: newNode(t)}
	p.root.digest = digest
	p.history = &streamtest.History{Truth: p.upstream.Truth(), DeletesUnnumbered: deletes != streamtest.OwnRevision}
	p.write(pairSize, false)
	p.end = p.upstream.Replica()
	p.start()
	registry := watch.NewRegistry()
	t.Cleanup(registry.Close)
	p.leaf = add(t, registry, "w", source(t, p.root.upstream(), "w", ""))
	p.reaches(p.leaf)
	return p
}

// start starts the root, which has no history then.
func (p *pair) start() {
	p.t.Helper()
	p.end.Catch(-1)
	p.end.Compact()
	registry := watch.NewRegistry()
	p.at = add(p.t, registry, "w", p.end)
	p.root.start(registry)
	p.reaches(p.at)
}

// write writes so many resources of 300 bytes that nothing compresses well, in one transaction; some are deleted.
func (p *pair) write(n int, deletes bool) {
	var writes []streamtest.Write
	for i := range n {
		text := make([]byte, 280)
		for i := range text {
			text[i] = byte('a' + rand.IntN(26))
		}
		key := fmt.Sprint("k", i)
		if i%100 == 0 {
			key = fmt.Sprintf("\xff%d", i) // not UTF-8
		}
		writes = append(writes, streamtest.Write{Key: key, Value: fmt.Sprintf("%q", text), Delete: deletes && i%4 == 3})
	}
	if n > 0 {
		p.upstream.Commit(1, writes...)
	}
}

// TestResumeByDigest: a gateway loses its history, or goes on in another order. What follows it is sent what differs,
// and has the same as after a snapshot, revisions included.
func TestResumeByDigest(t *testing.T) {
	for _, c := range []struct {
		name    string
		deletes streamtest.DeleteRevisions
		restore string
		changes int
		most    float64 // of the bytes of a snapshot
	}{
		{"deletes are forgotten", streamtest.OwnRevision, "", 20, 0.3},
		{"deletes have no revision", streamtest.NoRevision, "", 20, 0.3},
		{"another order", streamtest.OwnRevision, "f", 20, 0.3},
		{"another order, and nothing else", streamtest.OwnRevision, "f", 0, 0.3},
		{"another order, in which much is new", streamtest.OwnRevision, "f", 2500, 1.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, c.deletes)
			snapshot := p.root.sent.Load()
			visited, mark := p.visit(p.leaf, "L", nil)
			if visited.State().Diff(p.upstream.State()) != "" {
				t.Fatal("the leaf has something else at first")
			}
			p.root.kill()
			if c.restore != "" {
				p.upstream.Restore(c.restore, p.upstream.Revision()+1000)
				p.end.Move()
			}
			p.write(c.changes, true)
			p.start()
			await(t, p.leaf, func() bool { return p.leaf.Snapshot().Epoch() == p.at.Snapshot().Epoch() })
			p.reaches(p.leaf)
			sent := float64(p.root.sent.Load()-snapshot) / float64(snapshot)
			t.Logf("%.1f %% of a snapshot, %d requests beside streams", 100*sent, len(p.root.asked()))
			if sent > c.most {
				t.Errorf("%.2f of a snapshot were sent: want at most %.2f", sent, c.most)
			}
			if asked := len(p.root.asked()); asked == 0 {
				t.Error("no digest was asked for")
			}
			after, _ := p.visit(p.leaf, "L after", mark)
			if diff := after.State().Diff(p.upstream.State()); diff != "" {
				t.Errorf("the leaf has something else: %s", diff)
			}
			p.put("later")
			p.end.Catch(-1)
			p.reaches(p.at, p.leaf)
			last, _ := p.visit(p.leaf, "L later", nil)
			if diff := last.State().Diff(p.upstream.State()); diff != "" {
				t.Errorf("the leaf has something else later: %s", diff)
			}
			if err := streamtest.CheckAll(p.history); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUpstreamWithoutDigests: a gateway that follows one with stream.digest off primes, and goes on after a reload that
// turns them off, after a lost connection, and after a restart of the other one.
func TestUpstreamWithoutDigests(t *testing.T) {
	for _, from := range []gateway.Digest{gateway.DigestOff, gateway.DigestOn} {
		t.Run("from "+string(from), func(t *testing.T) {
			p := newPairWith(t, streamtest.OwnRevision, from)
			goesOn := func() {
				t.Helper()
				p.put("later")
				p.end.Catch(-1)
				p.reaches(p.at, p.leaf)
			}
			p.root.turnDigests(gateway.DigestOff)
			goesOn()
			p.root.cut()
			p.root.serve()
			goesOn()
			p.root.kill()
			p.upstream.Restore("f", p.upstream.Revision()+1000)
			p.end.Move()
			p.write(20, true)
			p.start()
			await(t, p.leaf, func() bool { return p.leaf.Snapshot().Epoch() == p.at.Snapshot().Epoch() })
			goesOn()
			if last, _ := p.visit(p.leaf, "L", nil); last.State().Diff(p.upstream.State()) != "" {
				t.Errorf("the leaf has something else: %s", last.State().Diff(p.upstream.State()))
			}
			if asked := p.root.asked(); len(asked) > 0 {
				t.Errorf("digests were asked for: %q", asked)
			}
		})
	}
}
