//go:build servers

package nats

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// replica is one gateway that follows a bucket, with its log.
type replica struct {
	*watch.Watch
	t *testing.T
}

func newReplica(t *testing.T, s stream.Source) replica {
	t.Helper()
	registry := watch.NewRegistry()
	t.Cleanup(registry.Close)
	w, err := registry.Add(watch.Config{
		Name: "w", Source: s, Backoff: watch.Backoff{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return replica{w, t}
}

// until waits for a state of the watch.
func (r replica) until(what string, reached func(v log.Snapshot) bool) {
	r.t.Helper()
	s := r.Subscribe(log.SubscribeOptions{})
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var b log.Batch
	for {
		for s.Next(&b) {
		}
		if reached(r.Snapshot()) {
			return
		}
		select {
		case <-s.Changed():
		case <-ctx.Done():
			r.t.Fatalf("never: %s; it has %v at %v", what, keysOf(r.Snapshot()), r.Snapshot().Position())
		}
	}
}

func (r replica) has(keys int) replica {
	r.t.Helper()
	r.until("so many keys", func(v log.Snapshot) bool { return v.Primed() && v.Count() == keys })
	return r
}

func keysOf(v log.Snapshot) map[string]uint64 {
	keys := map[string]uint64{}
	for r := range v.Resources() {
		keys[r.Key] = r.Revision
	}
	return keys
}

// visitor is a client that moves between replicas.
type visitor struct {
	holds    map[string]uint64
	position *stream.Position // nil: from nothing
}

// visit reads everything available. The position goes over the wire.
func (c *visitor) visit(r replica) log.ResumeOutcome {
	r.t.Helper()
	s := r.Subscribe(log.SubscribeOptions{Resume: c.position, AheadWait: 20 * time.Second})
	defer s.Close()
	var b log.Batch
	for !s.Synced() {
		for s.Next(&b) {
			c.apply(&b)
		}
		if !s.Synced() {
			<-s.Changed()
		}
	}
	p, _ := s.Position()
	read, err := stream.ParsePosition(p.String())
	if err != nil || read != p {
		r.t.Fatalf("position %v is read as %v: %v", p, read, err)
	}
	c.position = &read
	r.t.Logf("%s: holds %v at %v, the replica has %v", s.Outcome(), c.holds, p, keysOf(r.Snapshot()))
	return s.Outcome()
}

func (c *visitor) apply(b *log.Batch) {
	for e := range b.Events() {
		switch e.Type {
		case stream.Reset:
			c.holds = map[string]uint64{}
		case stream.Upsert:
			c.holds[e.Resource.Key] = e.Resource.Revision
		case stream.Delete:
			delete(c.holds, e.Resource.Key)
		}
	}
}

// agrees requires that a visitor holds the state of a replica.
func (c *visitor) agrees(r replica) {
	r.t.Helper()
	if want := keysOf(r.Snapshot()); !maps.Equal(c.holds, want) {
		r.t.Errorf("the client holds %v, the bucket has %v", c.holds, want)
	}
}

func often(c *Config)  { c.PollInterval = MinPollInterval }
func seldom(c *Config) { c.PollInterval = 3 * time.Second }

// pair is two replicas of a bucket with the keys j and x, the second behind a proxy.
func pair(t *testing.T) (b *handle, one, two replica, proxy *realserver.Proxy) {
	b = newClient(t, server(t).Addr()).bucket(jetstream.KeyValueConfig{})
	b.must(b.put("j", "1"))
	b.must(b.put("x", "1"))
	proxy = realserver.NewProxy(t, server(t).Addr())
	one = newReplica(t, source(t, server(t).Addr(), b.config.Bucket, seldom)).has(2)
	two = newReplica(t, source(t, proxy.Addr(), b.config.Bucket, often)).has(2)
	return b, one, two, proxy
}

// Two replicas poll at different moments, so one has noticed that a key
// vanished but is behind in writes, and the other one the reverse.
func TestReplicasPollOutOfPhase(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, one, two, _ := pair(t)
	b.must(b.put("k", "1"))
	one.has(3).until("a poll", func(v log.Snapshot) bool { return v.Position().DeletesCompleteTo() >= 3 })
	b.purge("j")
	two.has(2)
	b.must(b.put("y", "1"))
	one.until("y", func(v log.Snapshot) bool { return v.Revision() >= 4 })
	two.has(3)
	c := &visitor{}
	c.visit(one)
	if outcome := c.visit(two); outcome != log.OutcomeExact {
		t.Errorf("%s, want exact: the second replica has the delete that the first one missed", outcome)
	}
	c.agrees(two)
	one.has(3)
	c.visit(one)
	c.agrees(one)
}

// A replica is cut off while a key is written and another one vanishes: it finds
// both at once.
func TestReplicaThatWasCutOff(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, one, two, proxy := pair(t)
	b.must(b.put("y", "1"))
	one.has(3).until("a poll", func(v log.Snapshot) bool { return v.Position().DeletesCompleteTo() >= 3 })
	two.has(3)
	proxy.Refuse()
	proxy.Cut()
	b.must(b.put("k", "1"))
	one.has(4)
	c := &visitor{}
	c.visit(one)
	b.purge("j")
	proxy.Heal()
	two.until("all of it", func(v log.Snapshot) bool { return v.Count() == 3 && v.Revision() >= 4 })
	if outcome := c.visit(two); outcome != log.OutcomeExact {
		t.Errorf("%s, want exact: the second replica missed nothing", outcome)
	}
	c.agrees(two)
}

// A key is written and vanishes while a replica is cut off, which never sees it.
func TestKeyThatAReplicaMissed(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, one, two, proxy := pair(t)
	b.must(b.put("y", "1"))
	one.has(3).until("a poll", func(v log.Snapshot) bool { return v.Position().DeletesCompleteTo() >= 3 })
	two.has(3)
	proxy.Refuse()
	proxy.Cut()
	b.must(b.put("k", "1"))
	one.has(4)
	c := &visitor{}
	c.visit(one)
	b.purge("k")
	b.must(b.put("z", "1"))
	proxy.Heal()
	two.until("z", func(v log.Snapshot) bool { return v.Revision() >= 5 })
	if outcome := c.visit(two); outcome != log.OutcomeExpired {
		t.Errorf("%s, want expired: the second replica cannot know of k", outcome)
	}
	c.agrees(two)
}

// A replica that starts with a snapshot does not know the keys that vanished
// before.
func TestStartedReplica(t *testing.T) {
	b, one, _, _ := pair(t)
	c := &visitor{}
	c.visit(one)
	b.purge("j")
	started := newReplica(t, source(t, server(t).Addr(), b.config.Bucket)).has(1)
	if outcome := c.visit(started); outcome != log.OutcomeExpired {
		t.Errorf("%s, want expired", outcome)
	}
	c.agrees(started)
}

// Nothing is written to a bucket, or a key vanishes alone. A client that returns to
// its replica needs no snapshot.
func TestReplicaOfAnIdleBucket(t *testing.T) {
	b, _, two, _ := pair(t)
	c := &visitor{}
	c.visit(two)
	if outcome := c.visit(two); outcome != log.OutcomeExact {
		t.Errorf("%s, want exact: nothing has happened", outcome)
	}
	b.purge("j")
	two.has(1)
	if outcome := c.visit(two); outcome != log.OutcomeExact {
		t.Errorf("%s, want exact: the replica knows the vanished key", outcome)
	}
	c.agrees(two)
}

// logSink commits to a log, as a watch does.
type logSink struct {
	stream.PlainSink
	log     *log.Writer
	changes []log.Change
}

func (s *logSink) Reset(string) error { return nil }

func (s *logSink) Upsert(r stream.Resource) error {
	s.changes = append(s.changes, log.Change{Resource: r})
	return nil
}

func (s *logSink) Delete(key string, revision uint64) error {
	s.changes = append(s.changes, log.Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true})
	return nil
}

func (s *logSink) Commit(revision uint64) error {
	_, err := s.log.Commit(s.changes, revision)
	s.changes = nil
	return err
}

func (s *logSink) Status(state stream.State, reason string) error {
	s.log.SetStatus(stream.Status{State: state, Reason: reason})
	return nil
}

// A key is written while nothing is read, is sent, and vanishes before the names of
// the keys are first requested: all in one transaction.
func TestKeyVanishesInItsOwnTransaction(t *testing.T) {
	before := live(t)
	k := before.bucket.write("k")
	n := before.resuming()
	log := log.NewWriter(log.Config{Watch: "w"})
	if _, err := log.Replace("_e", []stream.Resource{{Key: "a", Revision: 1, Value: []byte("1")}}, 1); err != nil {
		t.Fatal(err)
	}
	n.reader.sink = &logSink{log: log}
	n.must(n.reader.ask(t.Context()))
	n.must(n.try(k, 0))
	n.bucket.vanish("k")
	n.must(n.reader.commit(t.Context()))
	n.poll()
	if _, there := log.Snapshot().Get("k"); there || log.Snapshot().Tombstones() != 1 {
		t.Errorf("k is there: %t; %d deletes are remembered, want that of k", there, log.Snapshot().Tombstones())
	}
}
