package gateway_test

import (
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream/watch"
)

// chain is three gateways, each behind the one before. The last two start again, and have nothing
// then.
type chain struct {
	*replicas
	nodes   [3]*node
	watches [3]*watch.Watch
}

func newChain(t *testing.T, deletes streamtest.DeleteRevisions) *chain {
	c := &chain{replicas: &replicas{t: t, upstream: streamtest.NewUpstream("e", deletes)}}
	c.history = &streamtest.History{Truth: c.upstream.Truth(), DeletesUnnumbered: deletes != streamtest.OwnRevision}
	for _, key := range []string{"a", "b", "c"} {
		c.put(key)
	}
	c.ends[0] = c.upstream.Replica()
	for i := range c.nodes {
		c.nodes[i] = newNode(t)
		c.start(i)
	}
	return c
}

func (c *chain) start(i int) {
	c.t.Helper()
	registry := watch.NewRegistry()
	if i == 0 {
		c.watches[0] = add(c.t, registry, "w", c.ends[0])
	} else {
		c.watches[i] = add(c.t, registry, "w", source(c.t, c.nodes[i-1].upstream(), "w", ""))
	}
	c.nodes[i].start(registry)
	c.reaches(c.watches[i])
}

// TestRestartKeepsTheHistory: a gateway that has begun again resumes what the one that it follows would,
// also if that one has begun again itself.
func TestRestartKeepsTheHistory(t *testing.T) {
	for deletes, want := range map[streamtest.DeleteRevisions]log.ResumeOutcome{
		streamtest.OwnRevision: log.OutcomeExact,
		streamtest.LastSeen:    log.OutcomeExpired,
		streamtest.NoRevision:  log.OutcomeExpired,
	} {
		t.Run(fmt.Sprint(deletes), func(t *testing.T) {
			c := newChain(t, deletes)
			_, mark := c.visit(c.watches[2], "L", nil)
			c.delete("a")
			c.put("b")
			c.put("short")
			c.delete("short")
			c.ends[0].Catch(-1)
			c.reaches(c.watches[:]...)
			for _, restarted := range [][]int{{2}, {1, 2}} {
				for _, i := range restarted {
					c.nodes[i].kill()
					c.start(i)
				}
				got, _ := c.visit(c.watches[2], fmt.Sprint("L after ", restarted), mark)
				if got.Outcome() != want {
					t.Errorf("%v after a restart of %v: %q, want %s: %s", mark.Position, restarted, got.Outcome(), want, got.Describe())
				}
				if diff := got.State().Diff(c.upstream.State()); diff != "" {
					t.Error(diff)
				}
			}
			if err := streamtest.CheckAll(c.history); err != nil {
				t.Error(err)
			}
		})
	}
}
