//go:build servers

package nats

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// cluster is three connected servers, by name.
func cluster(t *testing.T) (members map[string]*realserver.Server, urls string) {
	var routes, addresses []string
	for range 3 {
		routes = append(routes, realserver.FreeAddress(t))
	}
	members = map[string]*realserver.Server{}
	for i, route := range routes {
		name := fmt.Sprint("n", i)
		members[name] = ownServer(t, "-config", file(t, name, fmt.Sprintf(
			"server_name: %s\ncluster { name: c, listen: %q, routes: [ \"nats://%s\" ] }", name, route, strings.Join(routes, `", "nats://`))))
		addresses = append(addresses, "nats://"+members[name].Addr())
	}
	return members, strings.Join(addresses, ",")
}

// replicated makes a bucket replicated on all members.
func replicated(t *testing.T, urls string) *handle {
	c := newClient(t, strings.TrimPrefix(urls, "nats://"), nats.RetryOnFailedConnect(true))
	b := &handle{client: c, config: jetstream.KeyValueConfig{Bucket: "b", Replicas: 3}}
	for ctx := within(t); ; { // until they have elected a leader
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		kv, err := c.js.CreateKeyValue(attempt, b.config)
		cancel()
		if err == nil {
			b.KeyValue = kv
			return b
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// leader is the name of the member that leads the bucket.
func (h *handle) leader() string {
	h.t.Helper()
	var leader string
	h.must(h.insist(func(ctx context.Context) error {
		s, err := h.js.Stream(ctx, "KV_"+h.config.Bucket)
		if err == nil && s.CachedInfo().Cluster.Leader == "" {
			err = context.DeadlineExceeded
		}
		if err == nil {
			leader = s.CachedInfo().Cluster.Leader
		}
		return err
	}))
	return leader
}

// If the member that leads the bucket dies, another one continues where it was.
func TestClusterThatLosesItsLeader(t *testing.T) {
	t.Parallel() // it waits most of the time
	members, urls := cluster(t)
	b := replicated(t, urls)
	b.must(b.put("a", "0"))
	s := source(t, "", "b", func(c *Config) { c.URL = urls })
	r := start(t, s, nil).has("a", "0")
	first := r
	dead := members[b.leader()]
	dead.Kill()
	killed := time.Now()
	b.must(b.put("b", "1"))
	t.Logf("the cluster takes writes after %v", time.Since(killed))
	r = resume(t, s, r, "a", "0", "b", "1")
	t.Logf("and they have arrived after %v", time.Since(killed))
	b.must(dead.Restart())
	b.must(b.put("c", "2"))
	r = resume(t, s, r, "a", "0", "b", "1", "c", "2").resets(0)
	if a, b := first.Resume().Epoch, r.Resume().Epoch; a != b {
		t.Errorf("the epoch was %s and is %s", a, b)
	}
}

// resume restarts the source until it has a state.
func resume(t *testing.T, s *Source, r *run, pairs ...string) *run {
	t.Helper()
	for ctx := within(t); ; {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		reached := r.reaches(attempt, pairs...)
		cancel()
		if reached {
			return r
		}
		if ctx.Err() != nil {
			t.Fatalf("not reached %v: %v", pairs, r.err)
		}
		<-time.After(50 * time.Millisecond)
		r = start(t, s, r.stop())
	}
}
