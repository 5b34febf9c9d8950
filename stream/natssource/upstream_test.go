package natssource

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/streamtest"
)

// run is one Watch call under way.
type run struct {
	*streamtest.SinkRecorder
	t      *testing.T
	cancel context.CancelCauseFunc
	ended  chan struct{}
	err    error // read after ended
}

// start calls Watch, from nothing or from where an earlier run stopped.
func start(t *testing.T, s *Source, from *run) *run {
	var resume stream.Resume
	var state streamtest.State
	if from != nil {
		resume, state = from.Resume(), from.State()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &run{SinkRecorder: streamtest.NewSinkRecorder(resume, state), t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = s.Watch(ctx, resume, r.SinkRecorder)
		r.End()
	}()
	t.Cleanup(func() {
		r.stop()
		if err := r.Err(); err != nil {
			t.Errorf("the contract of Sink was broken: %v", err)
		}
	})
	return r
}

func (r *run) stop() *run {
	r.cancel(nil)
	<-r.ended
	return r
}

// until waits for what the recorder must show; it returns what is missing.
func (r *run) until(missing func() string) {
	r.t.Helper()
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	for {
		changed := r.Changed()
		what := missing()
		if what == "" {
			return
		}
		select {
		case <-changed:
		case <-r.ended:
			if what = missing(); what != "" {
				r.t.Fatalf("ended (%v), and %s", r.err, what)
			}
			return
		case <-timeout.C:
			r.t.Fatalf("after 30 s still: %s", what)
		}
	}
}

// has waits for a state: keys and values, one after the other.
func (r *run) has(pairs ...string) *run {
	r.t.Helper()
	want := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		want[pairs[i]] = pairs[i+1]
	}
	r.until(func() string {
		if got := values(r.State()); len(r.Commits()) == 0 || !maps.Equal(got, want) {
			return fmt.Sprintf("the state is %v, want %v", got, want)
		}
		return ""
	})
	return r
}

func values(s streamtest.State) map[string]string {
	out := map[string]string{}
	for key, v := range s {
		out[key] = v.Value
	}
	return out
}

// resets demands a number of snapshots.
func (r *run) resets(want int) *run {
	r.t.Helper()
	if got := r.Resets(); got != want {
		r.t.Errorf("%d snapshots, want %d", got, want)
	}
	return r
}

// purge takes a key out of the stream, so that no message says that it is gone.
func (h *handle) purge(key string) {
	h.t.Helper()
	s, err := h.js.Stream(within(h.t), "KV_"+h.config.Bucket)
	h.must(err)
	h.must(s.Purge(within(h.t), jetstream.WithPurgeSubject("$KV."+h.config.Bucket+"."+key)))
}

// shared makes a bucket on the shared server, and a source of it.
func shared(t *testing.T, c jetstream.KeyValueConfig, options ...func(*Config)) (*handle, *Source) {
	s := server(t)
	b := newClient(t, s.Addr()).bucket(c)
	return b, source(t, s.Addr(), b.config.Bucket, options...)
}

func TestHistoryAndPurge(t *testing.T) {
	for _, history := range []uint8{1, 10} {
		t.Run(fmt.Sprint(history), func(t *testing.T) {
			b, s := shared(t, jetstream.KeyValueConfig{History: history})
			for n := range 5 {
				b.must(b.put("a", strconv.Itoa(n)))
				b.must(b.put("b", strconv.Itoa(n)))
			}
			b.must(b.remove("b"))
			b.must(b.Purge(within(t), "c"))
			first := start(t, s, nil).has("a", "4").resets(1)
			b.must(b.put("b", "5"))
			first.has("a", "4", "b", "5")
			b.must(b.Purge(within(t), "a"))
			first.has("b", "5").resets(1).stop()
			for n := range 5 {
				b.must(b.put("a", strconv.Itoa(n)))
			}
			b.must(b.Purge(within(t), "b"))
			b.must(b.put("c", "6"))
			start(t, s, first).has("a", "4", "c", "6")
		})
	}
}

// A key that an administrator takes out of the stream leaves no message.
func TestPurgeFromTheStream(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{})
	for _, key := range []string{"a", "b", "c", "d"} {
		b.must(b.put(key, "1"))
	}
	first := start(t, s, nil).has("a", "1", "b", "1", "c", "1", "d", "1")
	b.purge("a")
	first.has("b", "1", "c", "1", "d", "1").resets(1).stop()
	b.purge("b")
	second := start(t, s, first).has("c", "1", "d", "1").resets(0)
	b.purge("d") // the newest message, by which the bucket is recognised
	second.has("c", "1").stop()
	third := start(t, s, second).has("c", "1")
	b.must(b.put("e", "1"))
	third.has("c", "1", "e", "1")
	if a, b := first.Resume().Epoch, third.Resume().Epoch; a != b {
		t.Errorf("the epoch was %s and is %s", a, b)
	}
}

// A reader who went away before a key vanished is told of it.
func TestMarkersThatVanish(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{})
	b.must(b.put("a", "1"))
	b.must(b.put("b", "1"))
	first := start(t, s, nil).has("a", "1", "b", "1").stop()
	b.must(b.remove("a"))
	b.must(b.PurgeDeletes(within(t), jetstream.DeleteMarkersOlderThan(-1)))
	b.must(b.put("c", "1"))
	start(t, s, first).has("b", "1", "c", "1")
}

func TestTTL(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{TTL: 1500 * time.Millisecond})
	b.must(b.put("a", "1"))
	r := start(t, s, nil).has("a", "1")
	r.has().resets(1)
	b.must(b.put("b", "1"))
	r.has("b", "1").stop()
	other := start(t, source(t, server(t).Addr(), b.config.Bucket), nil).has("b", "1")
	if a, b := r.Resume().Epoch, other.Resume().Epoch; a == b {
		t.Errorf("two processes name the order %s, though a sequence does not say which keys there were", a)
	}
	again := start(t, s, r)
	again.has().stop()
	if a, b := r.Resume().Epoch, again.Resume().Epoch; a != b {
		t.Errorf("the epoch was %s and is %s for the same process", a, b)
	}
}

// With markers a key that is too old leaves a message, so that all agree.
func TestTTLWithMarkers(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{LimitMarkerTTL: time.Second}, func(c *Config) { c.PollInterval = time.Hour })
	b.must(b.put("stays", "1"))
	_, err := b.Create(within(t), "goes", []byte("1"), jetstream.KeyTTL(time.Second))
	b.must(err)
	r := start(t, s, nil).has("stays", "1", "goes", "1")
	r.has("stays", "1")
	if got := r.Resume().Revision; got != 3 {
		t.Errorf("revision %d, want 3, that of the marker", got)
	}
	other := start(t, source(t, server(t).Addr(), b.config.Bucket), nil).has("stays", "1")
	if a, b := r.Resume().Epoch, other.Resume().Epoch; a != b {
		t.Errorf("the epoch is %s for one process and %s for another", a, b)
	}
}

func TestKeys(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{}, func(c *Config) { c.Keys = "eu.*.price" })
	b.must(b.put("eu.a.price", "1"))
	b.must(b.put("eu.a.name", "1"))
	b.must(b.put("us.a.price", "1"))
	r := start(t, s, nil).has("eu.a.price", "1")
	b.must(b.put("eu.b.price", "2"))
	b.must(b.remove("us.a.price"))
	r.has("eu.a.price", "1", "eu.b.price", "2")
	r.until(func() string { // others' writes are progress
		if got := r.Resume().Revision; got != 5 {
			return fmt.Sprintf("revision %d, want 5", got)
		}
		return ""
	})
	b.purge("eu.a.price")
	r.has("eu.b.price", "2").resets(1).stop()
	b.must(b.put("us.b.price", "3"))
	b.must(b.remove("eu.b.price"))
	start(t, s, r).has()
}

// A mirror has the keys, under the subjects of its origin.
func TestMirror(t *testing.T) {
	origin, _ := shared(t, jetstream.KeyValueConfig{})
	origin.must(origin.put("a", "1"))
	mirror := origin.client.bucket(jetstream.KeyValueConfig{
		Bucket: bucketName(t), Mirror: &jetstream.StreamSource{Name: origin.config.Bucket},
	})
	r := start(t, source(t, server(t).Addr(), mirror.config.Bucket), nil).has("a", "1")
	origin.must(origin.put("b", "2"))
	r.has("a", "1", "b", "2")
	origin.must(origin.remove("a"))
	r.has("b", "2").resets(1)
}

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

// allowBatches lets the bucket take several messages as one.
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
func TestEveryCommitIsAStateThatThereWas(t *testing.T) {
	const keys = 500
	b, s := shared(t, jetstream.KeyValueConfig{})
	var stop atomic.Bool
	written := make(chan uint64, 1)
	go func() {
		var n uint64
		for ; !stop.Load(); n++ {
			f, err := b.js.PublishAsync(fmt.Sprintf("$KV.%s.k%d", b.config.Bucket, (n+1)%keys), []byte(strconv.FormatUint(n+1, 10)))
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
	if len(s.known.keys) != keys || sink.upserts != keys {
		t.Errorf("%d upserts, %d keys known, want %d", sink.upserts, len(s.known.keys), keys)
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

// copyTree copies the data of a server that does not run.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(name, from))
		if e.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
