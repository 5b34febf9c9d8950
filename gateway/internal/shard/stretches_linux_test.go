package shard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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
		t.Errorf("%+v is left of files that are not used", left)
	}
}

// refs returns streams of two clients.
func refs() (one, other limits.Ref) {
	c := limits.New(limits.Limits{}, 0)
	one, _ = c.Enter(limits.Client{1}, nil)
	other, _ = c.Enter(limits.Client{2}, nil)
	return one, other
}

// newInvented returns what makes keys of stretches from positions.
func newInvented(t *testing.T) func(i int) stretchKey {
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
	return func(i int) stretchKey {
		at := uint64(5000 + i)
		r := w.Subscribe(log.SubscribeOptions{Resume: &stream.Position{Watch: "a", Epoch: "e", Upserts: at, AsOf: at}})
		defer r.Close()
		return keyOf(t, r)
	}
}

// TestInventedPositions: one client makes no stretches by positions that one stream of it has, and what is remembered of
// them is bounded. Those that two streams of it make displace none of the stretches that several clients use, and these displace them.
func TestInventedPositions(t *testing.T) {
	invented := newInvented(t)
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

// keptOf has a stretch made that two clients, or one, ask for, and returns it with its file held; nil if it is not kept.
func keptOf(s *stretches, key stretchKey, shared bool, size int) *stretch {
	one, other := refs()
	if !shared {
		other = one
	}
	s.find(key, one, time.Now())
	if _, makes := s.find(key, other, time.Now()); !makes {
		return nil
	}
	t := &stretch{key: key, of: other}
	if !s.put(t, [][]byte{make([]byte, size)}, time.Now()) {
		return nil
	}
	return t
}

// TestFilesAreLimited in number, those of one client to half, and count with all that they take.
func TestFilesAreLimited(t *testing.T) {
	s, invented := newStretches(1<<30, 40), newInvented(t)
	defer s.forgetUnused(time.Now().Add(time.Hour))
	for _, test := range []struct {
		shared bool
		want   int
	}{{false, 15}, {true, 30}} {
		for i := range 35 {
			one := keptOf(s, invented(100*test.want+i), test.shared, 1)
			if one == nil {
				t.Fatal("a stretch is not kept although no stream holds the others")
			}
			one.file.Release()
		}
		if got, want := s.room.now(), (fileUse{test.want, int64(test.want) * (filePage + fileOverhead)}); got != want {
			t.Errorf("of several clients: %v: the files are %+v, want %+v", test.shared, got, want)
		}
	}
}

// TestLateStreamsLeaveRoom: what streams hold for long after others have asked for it takes a room of its own. If that is full,
// what only one client has asked for is taken away first, then the oldest.
func TestLateStreamsLeaveRoom(t *testing.T) {
	const size, room = filePage, 4
	s, reader, now := newStretches(room*(size+fileOverhead), 512), newSpot(t), time.Now()
	var held []*stretch
	hold := func(shared bool) bool {
		one := keptOf(s, next(t, reader), shared, size)
		if one != nil {
			held = append(held, one)
		}
		return one != nil
	}
	for i := range room {
		if !hold(i != 1) {
			t.Fatal("there is no room from the beginning")
		}
	}
	if hold(true) {
		t.Fatal("there is room although streams hold all of it")
	}
	s.forgetUnused(now.Add(stretchLate - time.Second))
	if hold(true) {
		t.Fatal("there is room although streams hold all of it, and are not late")
	}
	s.forgetUnused(now.Add(stretchLate + time.Second))
	if !hold(true) {
		t.Error("there is no room although all streams are late")
	}
	got := ""
	for _, one := range held {
		if _, err := one.file.ReadAt(make([]byte, 1), 0); err == nil {
			got += "+"
		} else if errors.Is(err, epoll.ErrTaken) {
			got += "-"
		} else {
			t.Error(err)
		}
		one.file.Release()
	}
	if got != "--+++" { // there is room for two late ones
		t.Errorf("the files that are open are %s", got)
	}
	s.forgetUnused(now.Add(time.Hour))
	if left := s.room.now(); left != (fileUse{}) || len(s.dropped) > 0 {
		t.Errorf("%+v is left, and %d stretches", left, len(s.dropped))
	}
}

// openFiles returns how many descriptors of the process are memory files of stretches.
func openFiles(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if name, err := os.Readlink("/proc/self/fd/" + one.Name()); err == nil && strings.Contains(name, "watchtide-stretch") {
			n++
		}
	}
	return n
}

// TestInventedPositionsOpenFewFiles: none for the little that there is to be sent since each of them, and few for much.
func TestInventedPositionsOpenFewFiles(t *testing.T) {
	for _, test := range []struct {
		name             string
		value, positions int
		least, most      int
	}{{"small", 1, 2000, 0, 0}, {"large", 20 << 10, 500, 1, 192}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, "a")
				r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
				r.Commit("a", 20_000, gatewaytest.Resource("k", 20_000, `"`+strings.Repeat("v", test.value)+`"`))
				synctest.Wait()
				idle, err := r.client.Get("http://gateway/v1/events?watch=a") // so that not all is forgotten in between
				if err != nil {
					t.Fatal(err)
				}
				defer idle.Body.Close()
				before := openFiles(t)
				for i := range test.positions {
					for range 2 {
						if got := r.resumed(fmt.Sprint("a@e1-", 2+i), "identity"); !strings.Contains(got, "event: upsert") {
							t.Fatalf("a stream that resumes is sent %q", got)
						}
					}
				}
				if n := openFiles(t) - before; n < test.least || n > test.most {
					t.Errorf("%d more files are open after %d positions, want %d to %d", n, test.positions, test.least, test.most)
				}
			})
		})
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

// TestResumesShareStretches: so do streams that come at once with the same id, and each is sent what one alone is.
func TestResumesShareStretches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStretchRig(t)
		for revision := uint64(2001); revision <= 4000; revision += 100 {
			var some []stream.Resource
			for i := range uint64(100) {
				some = append(some, gatewaytest.Resource(fmt.Sprint("key-", revision+i-2001), revision+i, `"`+strings.Repeat("w", 900)+`"`))
			}
			r.Commit("a", revision+99, some...)
		}
		synctest.Wait()
		const from, other = "a@e1-2100", "a@e1-3500"
		want := map[string]string{from: r.resumed(from, "identity"), other: r.resumed(other, "identity")}
		for id, least := range map[string]int{from: 1900, other: 500} {
			if n := strings.Count(want[id], "event: upsert"); n != least {
				t.Fatalf("a stream that resumes from %s is sent %d resources", id, n)
			}
		}
		var clients sync.WaitGroup
		for i := range 24 {
			clients.Go(func() {
				id := []string{from, other}[i%2]
				encoding := []string{"identity", "gzip", "zstd"}[i/2%3]
				if got := r.resumed(id, encoding); got != want[id] {
					t.Errorf("a stream from %s, in %s, is sent %d bytes that differ from the %d of the first", id, encoding, len(got), len(want[id]))
				}
			})
		}
		clients.Wait()
		if made, sent, _ := r.shards.Stretches(); made == 0 || sent == 0 {
			t.Errorf("%d stretches were made, and sent %d times", made, sent)
		}
	})
}

// TestStretchesOfAWatchThatChanges: streams that come while others are sent a snapshot share it, although the watch has changed, and
// each then has all of it. One that ends with the snapshot is sent the newest state.
func TestStretchesOfAWatchThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStretchRig(t)
		first, err := r.client.Get("http://gateway/v1/events?watch=a")
		if err != nil {
			t.Fatal(err)
		}
		defer first.Body.Close()
		if _, err := io.CopyN(io.Discard, first.Body, 300<<10); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(10) {
			r.Commit("a", 2001+i, gatewaytest.Resource(fmt.Sprint("new-", i), 2001+i, "1"))
			synctest.Wait()
			text := r.get("/v1/events?watch=a").Text()
			if n := strings.Count(text, "event: upsert"); n != 2001+int(i) || !strings.Contains(text, `"revision":"2000","count":2000}`) {
				t.Errorf("stream %d is sent %d resources, and not the snapshot that others are sent", i, n)
			}
		}
		if made, sent, _ := r.shards.Stretches(); made == 0 || sent < 5*made {
			t.Errorf("%d stretches were made, and sent %d times", made, sent)
		}
		if text := r.body("", "identity"); !strings.Contains(text, `"revision":"2010","count":2010}`) {
			t.Error("a stream that ends with its snapshot is not sent the newest state")
		}
	})
}

// snapshot returns a snapshot of the watch, from its reset on.
func (r *rig) snapshot(encoding string) string {
	_, after, _ := strings.Cut(r.body("", encoding), "event: reset")
	return after
}

// resumed returns what a stream that resumes from an id is sent, from the first resource on.
func (r *rig) resumed(id, encoding string) string {
	_, after, found := strings.Cut(r.body(id, encoding), "event: upsert")
	if !found {
		return ""
	}
	return "event: upsert" + after
}

// body returns what a stream is sent, up to its goodbye, which has a hint of its own.
func (r *rig) body(id, encoding string) string {
	q, err := http.NewRequest(http.MethodGet, "http://gateway/v1/events?watch=a&until=end_of_snapshot", nil)
	if err != nil {
		r.t.Error(err)
		return ""
	}
	q.Header.Set("Accept-Encoding", encoding)
	if id != "" {
		q.Header.Set("Last-Event-ID", id)
	}
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
	before, _, _ := strings.Cut(string(text), "event: goodbye")
	return before
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

// TestTricklesLeaveRoom: streams that take a little now and then keep what they are sent, and not the room for new
// stretches. If there are too many of them, those that are sent files end as if they took nothing.
func TestTricklesLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStretchRig(t)
		var all []*http.Response
		for range 12 {
			res, err := r.client.Get("http://gateway/v1/events?watch=a")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			all = append(all, res)
			if _, err := io.CopyN(io.Discard, res.Body, 300<<10); err != nil {
				t.Fatal(err)
			}
		}
		trickle := func(d time.Duration) {
			for range d / time.Second {
				time.Sleep(time.Second)
				for _, res := range all {
					_, _ = io.CopyN(io.Discard, res.Body, 100) // it may have ended
				}
				synctest.Wait()
			}
		}
		room := &r.shards.stretches.room
		use := func() (all, late fileUse) {
			room.mu.Lock()
			defer room.mu.Unlock()
			return room.all, room.late
		}
		trickle(5 * time.Second)
		if all, late := use(); all.files == 0 || late.files > 0 {
			t.Errorf("the files are %+v, and those of late streams %+v", all, late)
		}
		trickle(20 * time.Second)
		if all, late := use(); all.files > 0 || late.files == 0 {
			t.Errorf("then the files are %+v, and those of late streams %+v", all, late)
		}
		if n, _ := listOf(r.deps, r.shards, "a", 1); n != len(all) {
			t.Errorf("%d streams are left of %d that trickle", n, len(all))
		}
		room.mu.Lock()
		room.mostLate = fileUse{}
		room.mu.Unlock()
		trickle(4 * time.Second)
		if all, late := use(); all.files+late.files > 0 {
			t.Errorf("at last the files are %+v, and those of late streams %+v", all, late)
		}
		trickle(r.deps.WriteTimeout + time.Minute)
		if n, _ := listOf(r.deps, r.shards, "a", 1); n != 1 {
			t.Errorf("%d streams are left, want the one that has read the log", n)
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
