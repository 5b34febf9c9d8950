//go:build servers

package nats

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// Messages that were published as one are committed as one.
func TestAtomicBatch(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{})
	b.allowBatches()
	r := start(t, s, nil).has()
	for n := range 20 {
		value := strconv.Itoa(n)
		b.must(b.batch("batch-"+value, []streamtest.Write{
			{Key: "a", Value: value}, {Key: "b", Value: value}, {Key: "gone", Delete: true}, {Key: "c", Value: value},
		}))
	}
	r.has("a", "19", "b", "19", "c", "19")
	for _, c := range r.Commits() {
		if a := c.State["a"].Value; a != c.State["b"].Value || a != c.State["c"].Value {
			t.Errorf("commit %d shows a part of a batch: %v", c.Revision, c.State)
		}
	}
}

// allowBatches lets the bucket accept several messages as one.
func (h *handle) allowBatches() {
	h.t.Helper()
	s, err := h.js.Stream(within(h.t), "KV_"+h.config.Bucket)
	h.must(err)
	config := s.CachedInfo().Config
	config.AllowAtomicPublish = true
	_, err = h.js.UpdateStream(within(h.t), config)
	h.must(err)
}

// batch makes several writes at once.
func (h *handle) batch(id string, writes []streamtest.Write) error {
	for i, w := range writes {
		m := nats.NewMsg("$KV." + h.config.Bucket + "." + w.Key)
		if m.Data = []byte(w.Value); w.Delete {
			m.Header.Set(headerOperation, "DEL")
		}
		m.Header.Set(headerBatch, id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		if i < len(writes)-1 {
			if err := h.conn.PublishMsg(m); err != nil {
				return err
			}
			continue
		}
		m.Header.Set(headerBatchEnd, "1")
		answer, err := h.conn.RequestMsg(m, 10*time.Second)
		if err != nil || strings.Contains(string(answer.Data), `"error"`) {
			return fmt.Errorf("the batch was refused: %v, %v", answer, err)
		}
	}
	return nil
}

// Every commit is a state that the bucket had: write n is of key n modulo some,
// with the value n, so that the state at each revision is known.
func TestEveryCommitIsAPastState(t *testing.T) {
	const keys = 500
	b, s := shared(t, jetstream.KeyValueConfig{})
	var stop atomic.Bool
	written := make(chan uint64, 1)
	go func() {
		var n uint64
		for ; !stop.Load(); n++ {
			f, err := b.js.PublishAsync(fmt.Sprintf("$KV.%s.k%d", b.config.Bucket, (n+1)%keys), []byte(strconv.FormatUint(n+1, 10)), patient)
			if err != nil {
				t.Error(err)
				break
			}
			if n%100 == 99 {
				<-f.Ok()
			}
		}
		<-b.js.PublishAsyncComplete()
		written <- n
	}()
	var runs []*run
	for range 10 {
		r := start(t, s, nil)
		r.until(func() string {
			if n := len(r.Commits()); n < 50 {
				return fmt.Sprintf("%d commits, want 50", n)
			}
			return ""
		})
		runs = append(runs, r.stop())
	}
	stop.Store(true)
	last := <-written
	final := start(t, s, runs[0])
	final.until(func() string {
		if got := final.Resume().Revision; got != last {
			return fmt.Sprintf("revision %d, want %d", got, last)
		}
		return ""
	})
	for _, r := range append(runs, final) {
		for _, c := range r.Commits() {
			checkRoundRobin(t, c, keys)
		}
	}
}

func checkRoundRobin(t *testing.T, c streamtest.CommitRecord, keys uint64) {
	t.Helper()
	if got, want := uint64(len(c.State)), min(c.Revision, keys); got != want {
		t.Fatalf("commit %d has %d keys, want %d", c.Revision, got, want)
	}
	for key, v := range c.State {
		i, _ := strconv.ParseUint(key[1:], 10, 64)
		want := c.Revision - (c.Revision%keys+keys-i)%keys
		if v.Revision != want || v.Value != strconv.FormatUint(want, 10) {
			t.Fatalf("commit %d has %s = %s at %d, want %d", c.Revision, key, v.Value, v.Revision, want)
		}
	}
}

func TestManyKeys(t *testing.T) {
	const keys = 50_000
	b, s := shared(t, jetstream.KeyValueConfig{})
	b.fill(keys, strconv.Itoa)
	sink := &counting{ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(ctx, stream.Resume{}, sink) }()
	select {
	case <-sink.ended:
	case err := <-ended:
		t.Fatal(err)
	case <-within(t).Done():
		t.Fatal("no snapshot within 30 s")
	}
	t.Logf("%d keys in %v", keys, time.Since(began))
	cancel()
	<-ended
	if len(s.checkpoint.keys) != keys || sink.upserts != keys {
		t.Errorf("%d upserts, %d keys known, want %d", sink.upserts, len(s.checkpoint.keys), keys)
	}
}

// counting is a Sink that counts up to the first Commit.
type counting struct {
	calls
	ended   chan struct{}
	upserts int
}

func (c *counting) Upsert(stream.Resource) error { c.upserts++; return nil }

func (c *counting) Commit(uint64) error {
	select {
	case <-c.ended:
	default:
		close(c.ended)
	}
	return nil
}
