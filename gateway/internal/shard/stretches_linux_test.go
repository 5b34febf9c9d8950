package shard

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// newSpot returns a subscription of its own log that is in a snapshot.
func newSpot(t *testing.T) *log.Subscription {
	t.Helper()
	w := log.NewWriter(log.Config{Watch: "a"})
	var all []stream.Resource
	for i := range 4000 {
		all = append(all, stream.Resource{Key: fmt.Sprint("key-", i), Revision: uint64(i + 1), Value: []byte(`"` + strings.Repeat("v", 300) + `"`)})
	}
	if _, err := w.Replace("e", all, 4000); err != nil {
		t.Fatal(err)
	}
	s := w.Subscribe(log.SubscribeOptions{})
	t.Cleanup(s.Close)
	var b log.Batch
	s.NextTurn(&b) // the reset
	return s
}

// keyOf returns the key of the stretch that comes next.
func keyOf(t *testing.T, s *log.Subscription) stretchKey {
	t.Helper()
	spot, ok := s.Spot()
	if !ok {
		t.Fatal("a reader in a snapshot is at no spot")
	}
	return stretchKey{spot: spot, format: frame.SSE}
}

// next moves a reader on, and returns the key of the stretch that comes next.
func next(t *testing.T, s *log.Subscription) stretchKey {
	t.Helper()
	var b log.Batch
	if !s.NextTurn(&b) {
		t.Fatal("the snapshot is too short")
	}
	return keyOf(t, s)
}

// made has a stretch of so many bytes made.
func made(s *stretches, key stretchKey, size int) {
	now := time.Now()
	one, other := refs()
	s.find(key, one, now)
	s.find(key, other, now)
	if t := (&stretch{key: key}); s.put(t, [][]byte{make([]byte, size)}, now) {
		t.file.Release()
	}
}

// TestSecondStreamMakesStretch: one stream alone does not, and while one makes it, others do not.
func TestSecondStreamMakesStretch(t *testing.T) {
	s, key, now := newStretches(1<<20, 64), keyOf(t, newSpot(t)), time.Now()
	defer s.forgetUnused(time.Now().Add(time.Hour))
	for i, want := range []bool{false, true, false, false} {
		if found, makes := s.find(key, limits.Ref{}, now); found != nil || makes != want {
			t.Errorf("stream %d is to make the stretch: %v, want %v", i, makes, want)
		}
	}
	if _, makes := s.find(key, limits.Ref{}, now.Add(2*stretchKept)); makes {
		t.Error("a stream makes a stretch that nobody asked for within a while")
	}
	one := &stretch{key: key}
	if !s.put(one, [][]byte{[]byte("one"), []byte("two")}, now) {
		t.Fatal("a stretch is not kept")
	}
	one.file.Release()
	found, _ := s.find(key, limits.Ref{}, now)
	if found == nil {
		t.Fatal("a stretch that was made is not found")
	}
	defer found.file.Release()
	text := make([]byte, 6)
	if _, err := found.file.ReadAt(text, 0); err != nil || string(text) != "onetwo" {
		t.Errorf("the file has %q, error %v", text, err)
	}
	other := key
	other.coding = wire.Gzip
	if found, _ := s.find(other, limits.Ref{}, now); found != nil {
		t.Error("a stretch is found in another form")
	}
}

// TestStretchesStayWithinTheirBudget, whoever holds the files of those that were dropped.
func TestStretchesStayWithinTheirBudget(t *testing.T) {
	const size = filePage
	s, reader := newStretches(4*(size+fileOverhead), 512), newSpot(t)
	var held []*stretch
	for range 6 {
		key := next(t, reader)
		made(s, key, size)
		if found, _ := s.find(key, limits.Ref{}, time.Now()); found != nil {
			held = append(held, found)
		}
		if got := s.room.now(); got.bytes > s.room.most.bytes {
			t.Fatalf("files have %d bytes, and may have %d", got.bytes, s.room.most.bytes)
		}
	}
	if len(held) != 4 {
		t.Errorf("%d files were made while slow streams hold all: want 4", len(held))
	}
	for _, one := range held {
		one.file.Release()
	}
	for range 6 { // nobody holds these: the least recently used ones go
		key := next(t, reader)
		made(s, key, size)
		found, _ := s.find(key, limits.Ref{}, time.Now())
		if found == nil {
			t.Fatal("there is no room although no stream holds a file")
		}
		found.file.Release()
	}
	s.forgetUnused(time.Now().Add(time.Hour))
	if left := s.room.now(); left != (fileUse{}) {
		t.Errorf("%+v is left of files that nobody uses", left)
	}
}

// refs returns streams of two clients.
func refs() (one, other limits.Ref) {
	c := limits.New(limits.Limits{}, 0)
	one, _ = c.Enter(limits.Client{1}, nil)
	other, _ = c.Enter(limits.Client{2}, nil)
	return one, other
}

// TestInventedPositions: one client makes no stretches by positions that one stream of it has, and what is remembered of
// them is bounded. Those that two streams of it make displace none of the stretches that several clients use, and these displace them.
func TestInventedPositions(t *testing.T) {
	w := log.NewWriter(log.Config{Watch: "a"})
	one := stream.Resource{Key: "one", Revision: 1, Value: []byte("1")}
	if _, err := w.Replace("e", []stream.Resource{one}, 1); err != nil {
		t.Fatal(err)
	}
	w.SetStatus(stream.Status{State: stream.InSync})
	one.Revision = 20_000
	if _, err := w.Commit([]log.Change{{Resource: one}}, 20_000); err != nil {
		t.Fatal(err)
	}
	invented := func(i int) stretchKey {
		at := uint64(5000 + i)
		r := w.Subscribe(log.SubscribeOptions{Resume: &stream.Position{Watch: "a", Epoch: "e", Upserts: at, AsOf: at}})
		defer r.Close()
		return keyOf(t, r)
	}
	const size, room = filePage, 4
	s := newStretches(room*(size+fileOverhead), 512)
	defer s.forgetUnused(time.Now().Add(time.Hour))
	for i := range 10_000 {
		if _, makes := s.find(invented(i), limits.Ref{}, time.Now()); makes {
			t.Fatal("a stretch is made for a position that only one stream has")
		}
		s.mu.Lock() // a sweep may run
		asked := len(s.asked)
		s.mu.Unlock()
		if asked > stretchAsksOfClient {
			t.Fatalf("%d spots of one client are remembered, want %d at most", asked, stretchAsksOfClient)
		}
	}
	s.forgetUnused(time.Now().Add(time.Hour))
	attacker, other := refs()
	ask := func(key stretchKey, by ...limits.Ref) bool {
		now, makes := time.Now(), false
		for _, of := range by {
			_, makes = s.find(key, of, now)
		}
		t := &stretch{key: key, of: by[len(by)-1]}
		if !makes || !s.put(t, [][]byte{make([]byte, size)}, now) {
			return false
		}
		t.file.Release()
		return true
	}
	has := func(key stretchKey, of limits.Ref) bool {
		found, _ := s.find(key, of, time.Now())
		if found != nil {
			found.file.Release()
		}
		return found != nil
	}
	reader := newSpot(t)
	var wanted []stretchKey
	for range room {
		key := next(t, reader)
		wanted = append(wanted, key)
		for i := range 2 * room {
			ask(invented(-len(wanted)*100-i), attacker, attacker)
		}
		if !ask(key, other, attacker) {
			t.Fatalf("stretch %d of two clients is not made", len(wanted))
		}
		for i, key := range wanted {
			if !has(key, other) {
				t.Fatalf("stretch %d of two clients is displaced by those that one invents", i)
			}
		}
	}
	if ask(invented(-1), attacker, attacker) {
		t.Error("a stretch of one client displaces one of two")
	}
	s.forgetUnused(time.Now().Add(time.Hour))
	alone, crowd := next(t, reader), next(t, reader)
	if !ask(alone, attacker, attacker) || !has(alone, other) { // now another client has it too
		t.Fatal("a stretch of one client is not found by another one")
	}
	for i := range 2 * room {
		ask(invented(-1000-i), attacker, attacker)
	}
	if !has(alone, other) {
		t.Error("a stretch that another client has used is displaced by those that one invents")
	}
	for range room {
		ask(crowd, attacker, other)
		crowd = next(t, reader)
	}
	if has(alone, other) {
		t.Error("the stretch that was not used for longest is not displaced")
	}
}

// TestStretchesAreWhatTheLogHas: many streams that come at once are sent the same as the first one, in
// each form, and leave nothing behind.
func TestStretchesAreWhatTheLogHas(t *testing.T) {
	for _, encoding := range []string{"identity", "gzip", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkStretches(t, encoding) })
		})
	}
}

// newStretchRig serves a watch whose snapshot has several stretches.
func newStretchRig(t *testing.T) *rig {
	r := newRig(t, func(d *session.Deps) { d.Pieces = wire.NewCache(1 << 20) }, "a")
	var all []stream.Resource
	for i := range 2000 {
		value := fmt.Sprintf(`"%d %s"`, i, strings.Repeat("v", 900))
		all = append(all, gatewaytest.Resource(fmt.Sprint("key-", i), uint64(i+1), value))
	}
	r.Prime("a", 2000, all...)
	synctest.Wait()
	return r
}

func checkStretches(t *testing.T, encoding string) {
	r := newStretchRig(t)
	want := r.snapshot(encoding)
	if n := strings.Count(want, "event: upsert"); n != 2000 {
		t.Fatalf("a stream alone is sent %d resources", n)
	}
	var clients sync.WaitGroup
	for range 12 {
		clients.Go(func() {
			if got := r.snapshot(encoding); got != want {
				t.Errorf("a stream is sent %d bytes that differ from the %d of the first", len(got), len(want))
			}
		})
	}
	clients.Wait()
	if made, sent, _ := r.shards.Stretches(); made == 0 || sent == 0 {
		t.Errorf("%d stretches were made, and sent %d times", made, sent)
	}
	r.client.CloseIdleConnections()
	synctest.Wait()
	time.Sleep(netconn.Linger + time.Second)
	synctest.Wait()
	if _, _, bytes := r.shards.Stretches(); bytes != 0 {
		t.Errorf("files have %d bytes although there is no stream", bytes)
	}
}

// snapshot returns a snapshot of the watch, from its reset on.
func (r *rig) snapshot(encoding string) string {
	q, err := http.NewRequest(http.MethodGet, "http://gateway/v1/events?watch=a&until=end_of_snapshot", nil)
	if err != nil {
		r.t.Error(err)
		return ""
	}
	q.Header.Set("Accept-Encoding", encoding)
	res, err := r.client.Do(q)
	if err != nil {
		r.t.Error(err)
		return ""
	}
	defer res.Body.Close()
	res.Header.Set("Content-Encoding", encoding) // which is for the gateway to say
	gatewaytest.Unzip(res)
	text, err := io.ReadAll(res.Body) // which checks the sums
	if err != nil {
		r.t.Error(err)
	}
	_, after, _ := strings.Cut(string(text), "event: reset")
	after, _, _ = strings.Cut(after, "event: goodbye") // with a hint of its own
	return after
}

// TestOutboxWithFile: what a file has of an outbox follows the rest, and the outbox is empty once both are
// written.
func TestOutboxWithFile(t *testing.T) {
	var o outbox
	o.raw([]byte("head"))
	from := len(o.slices)
	o.Write(make([]byte, 3*outboxSmall))
	o.seal()
	o.holds = 100
	file, err := epoll.NewFile(o.slices[from:], nil)
	if err != nil {
		t.Fatal(err)
	}
	o.cut(from, 10)
	o.attach(file, 0)
	if o.unsent != len("head") || o.holds != 10 || o.said != 3*outboxSmall || !o.full() || o.empty() {
		t.Fatalf("%+v", o)
	}
	o.sent(len("head"))
	o.sentFile(1)
	if o.empty() || !o.full() {
		t.Error("the outbox has nothing although a file is not written")
	}
	o.sentFile(file.Size() - 1)
	if !o.empty() || o.full() || len(o.buffer) > 0 || o.from > 0 || o.holds > 0 {
		t.Errorf("everything is written, and %+v is left", o)
	}
	o.Write([]byte("more"))
	o.seal()
	if got := string(bytes.Join(o.slices, nil)); got != "4\r\nmore\r\n" {
		t.Errorf("then %q is to be written", got)
	}
}

// TestStalledStreamsGiveFilesBack: streams that take no more bytes hold what they are sent, within the budget,
// until they are ended.
func TestStalledStreamsGiveFilesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStretchRig(t)
		var stalled []*http.Response
		for range 12 {
			res, err := r.client.Get("http://gateway/v1/events?watch=a")
			if err != nil {
				t.Fatal(err)
			}
			stalled = append(stalled, res)
			if _, err := io.CopyN(io.Discard, res.Body, 300<<10); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * stretchKept) // nobody asks for a stretch any more
		synctest.Wait()
		if _, _, bytes := r.shards.Stretches(); bytes == 0 || bytes > stretchesBudget {
			t.Errorf("files have %d bytes while streams are being sent them", bytes)
		}
		time.Sleep(2 * r.deps.WriteTimeout)
		synctest.Wait()
		if _, _, bytes := r.shards.Stretches(); bytes != 0 {
			t.Errorf("files have %d bytes although all streams are ended", bytes)
		}
		for _, res := range stalled {
			res.Body.Close()
		}
	})
}

// TestLeaseIsKeptWithinAStretch: a stream that takes a flush in a second keeps its lease while others wait,
// although it takes longer for a stretch.
func TestLeaseIsKeptWithinAStretch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStretchRig(t)
		r.deps.Snapshots.Resize(1)
		open := func() *http.Response {
			res, err := r.client.Get("http://gateway/v1/events?watch=a")
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		first := open()
		defer first.Body.Close()
		if _, err := io.CopyN(io.Discard, first.Body, 10<<10); err != nil {
			t.Fatal(err)
		}
		second := r.get("/v1/events?watch=a")
		for range 8 {
			if _, err := io.CopyN(io.Discard, first.Body, 100<<10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if text := second.Text(); strings.Contains(text, "event: reset") || !strings.Contains(text, "waits for its turn") {
			t.Errorf("while a stream is sent a snapshot, the one that waits for it is sent %d bytes", len(text))
		}
	})
}
