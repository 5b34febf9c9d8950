package log

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// heldByPins is what the pinned versions of a log hold and its head does not.
func heldByPins(l *Writer, pinned []*storage.Version) (held int64) {
	head := l.head.Load()
	segments, indexes := map[*storage.Segment]bool{}, map[*storage.Index]bool{head.Index: true}
	for _, s := range head.Segments {
		segments[s] = true
	}
	for _, v := range pinned {
		for _, s := range v.Segments {
			if !segments[s] {
				segments[s] = true
				held += s.Bytes()
			}
		}
		if !indexes[v.Index] {
			indexes[v.Index] = true
			held += v.Index.Bytes()
		}
	}
	return held
}

// TestPinsAreCounted: whatever versions readers pin, and however the log changes,
// what is counted as pinned is what is held, and little more.
func TestPinsAreCounted(t *testing.T) {
	most := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		const ceiling = 16 * mega
		account := memory.NewAccount(ceiling, nil)
		l := NewWriter(Config{Watch: "w", Account: account})
		revision := uint64(1)
		var readers []*Subscription
		if _, err := l.Replace("e", nil, 1); err != nil {
			t.Fatal(err)
		}
		draw := func(t *rapid.T) (all []Change) {
			at := rapid.IntRange(0, 100).Draw(t, "at")
			for i := range rapid.IntRange(1, 100).Draw(t, "n") {
				revision++
				all = append(all, large(fmt.Sprint((at+i)%120), revision, 20_000))
			}
			return all
		}
		for range 2 {
			t.Repeat(map[string]func(*rapid.T){
				"commit": func(t *rapid.T) {
					if _, err := l.Commit(draw(t), revision); err != nil {
						t.Fatal(err)
					}
				},
				"replace": func(t *rapid.T) {
					var resources []stream.Resource
					for _, c := range draw(t) {
						resources = append(resources, c.Resource)
					}
					epoch := rapid.SampledFrom([]string{"e", "e", "e", "f"}).Draw(t, "epoch")
					if _, err := l.Replace(epoch, resources, revision); err != nil {
						t.Fatal(err)
					}
				},
				"join": func(*rapid.T) { readers = append(readers, l.Subscribe(SubscribeOptions{})) },
				"read": func(t *rapid.T) {
					for _, s := range readers {
						var b Batch
						for range rapid.IntRange(0, 3).Draw(t, "flushes") {
							s.Next(&b)
						}
					}
				},
				"leave": func(t *rapid.T) {
					if len(readers) > 0 {
						i := rapid.IntRange(0, len(readers)-1).Draw(t, "who")
						readers[i].Close()
						readers = slices.Delete(readers, i, i+1)
					}
				},
				"page": func(t *rapid.T) {
					if _, err := l.Page("", 3); err != nil {
						t.Fatal(err)
					}
				},
				"": func(t *rapid.T) { most = max(most, checkPins(t, l)) },
			})
		}
		for _, s := range readers {
			s.Close()
		}
		l.pins.TakeAll()
		if n := l.pins.Held(); n != 0 || l.pins.Eras() != 1 || account.Own().Superseded() != l.dead {
			t.Fatalf("without a pin %d bytes are held, in %d eras; %d are superseded, and %d dead", n, l.pins.Eras(), account.Own().Superseded(), l.dead)
		}
	})
	if most < mega {
		t.Errorf("%d bytes were pinned at most: the test shows nothing", most)
	}
}

func checkPins(t *rapid.T, l *Writer) int64 {
	pinned := l.pins.Versions()
	real, counted := heldByPins(l, pinned), l.pins.Held()
	lists := inList * int64(len(pinned)) * 1000
	slack := lists + int64(l.pins.Eras())*2*l.account.EraBytes(l.Snapshot().Bytes())
	if counted < real || counted > real+slack {
		t.Fatalf("%d bytes are counted, %d held by %d pins in %d eras", counted, real, len(pinned), l.pins.Eras())
	}
	if l.account.Own().Swollen() && counted > 0 {
		t.Fatalf("%d bytes in the log, %d superseded, and %d are pinned still", l.account.Own().Logs(), l.account.Own().Superseded(), counted)
	}
	return counted
}

// rewrite changes all n resources, each in a transaction of its own.
func rewrite(t *testing.T, l *Writer, n, size int, revision *uint64) {
	t.Helper()
	for i := range n {
		*revision++
		if _, err := l.Commit([]Change{large(fmt.Sprint("k", i), *revision, size)}, *revision); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlowReadersStayWithinTheCeiling: the versions that readers pin are within the
// ceiling, however often everything changes. The readers still get to the end.
func TestSlowReadersStayWithinTheCeiling(t *testing.T) {
	const n, size, ceiling = 2500, 4000, 40 * mega
	for _, shared := range []bool{false, true} {
		total := memory.NewCeiling(ceiling)
		account := memory.NewAccount(0, total)
		if !shared {
			account = memory.NewAccount(ceiling, nil)
			total = account.Own()
		}
		l := NewWriter(Config{Watch: "w", Account: account})
		var readers []*follower
		revision := uint64(n)
		before := heapInUse()
		mustReplace(t, l, "e", revision, larges(n, size)...)
		inSync(l)
		for range 10 {
			r := &follower{s: l.Subscribe(SubscribeOptions{}), state: map[string]uint64{}}
			r.flush()
			r.flush()
			if !r.s.walking() {
				t.Fatal("the reader is through already")
			}
			readers = append(readers, r)
			rewrite(t, l, n, size, &revision)
			if held := total.Logs() + total.Superseded(); held > ceiling/5*3 {
				t.Errorf("%d bytes are counted", held)
			}
		}
		if used := heapInUse() - before; used > ceiling {
			t.Errorf("10 readers that read little hold the heap at %d MiB under a ceiling of %d MiB", used>>20, ceiling>>20)
		}
		renewed := 0
		for i, r := range readers {
			for r.flush() {
			}
			renewed += r.renewed
			if len(r.state) != n || r.state["k0"] != revision-n+1 || !r.s.CaughtUp() {
				t.Errorf("reader %d has %d resources, k0 as of %d", i, len(r.state), r.state["k0"])
			}
			r.s.Close()
		}
		if renewed < 5 {
			t.Errorf("%d readers went on with a newer version", renewed)
		}
		if n := total.Superseded(); n != l.dead {
			t.Errorf("%d bytes are superseded, and nobody reads; %d are in the log", n, l.dead)
		}
	}
}

// follower is a reader that records what it is sent.
type follower struct {
	s       *Subscription
	b       Batch
	state   map[string]uint64
	events  []string
	upserts int
	renewed int
}

func (r *follower) flush() bool {
	if !r.s.Next(&r.b) {
		return false
	}
	for e := range r.b.Events() {
		switch e.Type {
		case stream.Reset:
			clear(r.state)
			r.events = append(r.events, "reset")
		case stream.Upsert:
			r.state[e.Resource.Key] = e.Resource.Revision
			r.upserts++
		case stream.Delete:
			delete(r.state, e.Resource.Key)
			r.events = append(r.events, "delete "+e.Resource.Key)
		case stream.EndOfSnapshot:
			r.events = append(r.events, fmt.Sprintf("end %d resumed %t", e.Count, e.Resumed))
		case stream.StatusChange:
			r.events = append(r.events, e.State.String())
			if e.State == stream.CatchingUp {
				r.renewed++
			}
		case stream.Bookmark:
			r.events = append(r.events, "bookmark")
		}
	}
	return true
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// TestWalkThatIsGivenUp: after its version was taken away, a snapshot continues in
// the newest one: deletes first, then what is newer than what was passed.
func TestWalkThatIsGivenUp(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	revision := uint64(100)
	mustReplace(t, l, "e", revision, larges(100, 4000)...)
	inSync(l)
	r := &follower{s: l.Subscribe(SubscribeOptions{}), state: map[string]uint64{}}
	r.flush()
	l.pins.TakeAll() // nothing was passed: nobody notices
	r.flush()
	r.flush()
	passed := len(r.state)
	if passed == 0 || passed > 50 {
		t.Fatalf("%d resources were passed", passed)
	}
	mustCommit(t, l, 101, Change{Resource: stream.Resource{Key: "k1", Revision: 101}, Deleted: true}, large("k2", 101, 10))
	mustCommit(t, l, 102, Change{Resource: stream.Resource{Key: "k99", Revision: 102}, Deleted: true}, large("new", 102, 10))
	before, _ := r.s.Position()
	l.pins.TakeAll()
	if !r.flush() || r.events[len(r.events)-3] != "catching_up" {
		t.Fatalf("after its version was taken away: %q", r.events)
	}
	if after, _ := r.s.Position(); after.AsOf != 102 || after.Upserts < before.Upserts {
		t.Errorf("position %v after %v", after, before)
	}
	for r.flush() {
	}
	want := []string{"reset", "catching_up", "delete k1", "delete k99", "end 99 resumed true", "in_sync"}
	if !slices.Equal(r.events, want) {
		t.Errorf("got %q, want %q", r.events, want)
	}
	if len(r.state) != 99 || r.state["k2"] != 101 || r.state["new"] != 102 || !r.s.CaughtUp() {
		t.Errorf("%d resources, k2 as of %d", len(r.state), r.state["k2"])
	}
}

// TestPinOfANewGeneration: a reader that begins as soon as a generation is published
// keeps its version, although the readers of the old generation lose theirs then.
func TestPinOfANewGeneration(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	for i := range length(2000, 200) {
		before := l.Snapshot().Epoch()
		var reader sync.WaitGroup
		reader.Go(func() {
			for l.Snapshot().Epoch() == before {
				runtime.Gosched()
			}
			r := &follower{s: l.Subscribe(SubscribeOptions{}), state: map[string]uint64{}}
			defer r.s.Close()
			r.flush() // the reset
			r.flush()
			runtime.Gosched()
			if r.s.pin.Version() == nil {
				t.Errorf("generation %d: no version is pinned after %q and %d resources", i, r.events, len(r.state))
			}
		})
		mustReplace(t, l, fmt.Sprint("e", i), 100, larges(40, 4000)...)
		reader.Wait()
	}
}

// TestWalkThatCannotGoOn begins again: what was deleted meanwhile is forgotten.
func TestWalkThatCannotGoOn(t *testing.T) {
	l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 1}})
	mustReplace(t, l, "e", 100, larges(100, 4000)...)
	inSync(l)
	r := &follower{s: l.Subscribe(SubscribeOptions{}), state: map[string]uint64{}}
	r.flush()
	r.flush()
	for i := range uint64(3) {
		mustCommit(t, l, 101+i, Change{Resource: stream.Resource{Key: fmt.Sprint("k", i), Revision: 101 + i}, Deleted: true}, large("new", 101+i, 10))
	}
	l.pins.TakeAll()
	for r.flush() {
	}
	if want := []string{"reset", "reset", "end 98 resumed false"}; !slices.Equal(r.events, want) || len(r.state) != 98 {
		t.Errorf("got %q and %d resources, want %q", r.events, len(r.state), want)
	}
}

// TestLargeTransaction: one that is larger than a reader may hold takes several
// flushes, with an id only at its end. A reader that is too slow for it catches up.
func TestLargeTransaction(t *testing.T) {
	for _, slow := range []bool{false, true} {
		l := NewWriter(Config{Watch: "w"})
		mustReplace(t, l, "e", 1)
		inSync(l)
		r := &follower{s: l.Subscribe(SubscribeOptions{}), state: map[string]uint64{}}
		for r.flush() {
		}
		r.events = nil
		transaction := larges(1000, 4000)
		for i := range transaction {
			transaction[i].Revision = 2
		}
		mustCommit(t, l, 2, transaction...)
		flushes := 0
		for r.flush() {
			flushes++
			if r.b.bytes > 2*storage.ReplaySize {
				t.Errorf("a flush of %d bytes", r.b.bytes)
			}
			position, _ := r.s.Position()
			if whole := len(r.state) == 1000; !slow && (r.b.Boundary() != whole || r.s.Uncovered() == whole || position.Partial()) {
				t.Errorf("after %d resources: boundary %t, uncovered %t, position %v", len(r.state), r.b.Boundary(), r.s.Uncovered(), position)
			}
			if slow && flushes == 1 {
				mustCommit(t, l, 3, Change{Resource: stream.Resource{Key: "k0", Revision: 3}, Deleted: true})
				l.pins.TakeAll()
			}
		}
		want := []string(nil)
		if slow {
			want = []string{"catching_up", "delete k0", "bookmark", "in_sync"}
		}
		if flushes < 4 || !slices.Equal(r.events, want) || len(r.state) != 1000 && !slow {
			t.Errorf("slow %t: %d flushes, %q, %d resources", slow, flushes, r.events, len(r.state))
		}
	}
}

// TestFlushHoldsLittle: however far apart the deletes are that it gives, a flush refers
// to few segments.
func TestFlushHoldsLittle(t *testing.T) {
	const upserts, deletes = 8000, 80
	l := NewWriter(Config{Watch: "w"})
	var gone []Change
	for i := range deletes {
		gone = append(gone, upsert(fmt.Sprint("gone-", i), 1))
	}
	mustReplace(t, l, "e", 1, gone...)
	revision := uint64(1)
	for i, c := range larges(upserts, 1000) {
		revision++
		c.Revision = revision
		mustCommit(t, l, revision, c)
		if i%(upserts/deletes) == 0 {
			revision++
			mustCommit(t, l, revision, remove(fmt.Sprint("gone-", i/(upserts/deletes)), revision))
		}
	}
	r := &follower{s: l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: 1, AsOf: 1}}), state: map[string]uint64{}}
	most := int64(0)
	for r.flush() {
		held := map[*storage.Segment]bool{}
		bytes := int64(0)
		for _, p := range r.b.pieces {
			if p.segment != nil && !held[p.segment] {
				held[p.segment] = true
				bytes += p.segment.Bytes()
			}
		}
		if most = max(most, bytes); bytes > int64(4*storage.FlushSize+2*storage.SegmentSize) {
			t.Fatalf("a flush of %d bytes holds %d", r.b.Bytes(), bytes)
		}
	}
	if most < int64(2*storage.FlushSize) || len(r.state) != upserts {
		t.Errorf("no flush holds more than %d; %d resources", most, len(r.state))
	}
}

// TestReleasedBatch holds nothing of the log, and keeps its counts.
func TestReleasedBatch(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 2, upsert("a", 1), upsert("b", 2))
	s, b := l.Subscribe(SubscribeOptions{}), new(Batch)
	s.Next(b)
	s.Next(b)
	b.Release()
	if !b.Empty() || b.Count(stream.Upsert) != 2 || len(bytes.Join(b.Append(nil, frame.SSE, nil), nil)) != 0 {
		t.Errorf("empty %t, %d upserts", b.Empty(), b.Count(stream.Upsert))
	}
	for _, p := range b.pieces[:cap(b.pieces)] {
		if p.segment != nil {
			t.Error("a segment is held")
		}
	}
}

// TestListingsStayWithinTheCeiling: the versions of listings are within the ceiling.
// The token of a listing that was taken away fails, or the page can be read from the
// log.
func TestListingsStayWithinTheCeiling(t *testing.T) {
	const n, size, ceiling = 2500, 4000, 40 * mega
	account := memory.NewAccount(ceiling, nil)
	l := NewWriter(Config{Watch: "w", Account: account})
	revision := uint64(n)
	before := heapInUse()
	mustReplace(t, l, "e", revision, larges(n, size)...)
	var tokens []string
	for range 5 {
		p, err := l.Page("", 10)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, p.Next)
		rewrite(t, l, n, size, &revision)
		if held := account.Own().Logs() + account.Own().Superseded(); held > ceiling/5*3 {
			t.Errorf("%d bytes are counted", held)
		}
	}
	if used := heapInUse() - before; used > ceiling {
		t.Errorf("5 listings hold the heap at %d MiB under a ceiling of %d MiB", used>>20, ceiling>>20)
	}
	if _, err := l.Page(tokens[0], 10); !errors.Is(err, ErrPageGone) {
		t.Errorf("the oldest listing: %v, want ErrPageGone", err)
	}
	p, err := l.Page("", 10)
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, l, revision+1, large("k0", revision+1, 10))
	if next, err := l.Page(p.Next, 10); err != nil || next.Revision != revision || strings.Contains(string(next.Resources[0].Value), "new") {
		t.Errorf("a listing that is read: %v", err)
	}
}

// TestListingsHoldNoMoreThanTheLog: under a ceiling with a lot of room, or without any, the
// versions of listings and the log together take at most twice what is served.
func TestListingsHoldNoMoreThanTheLog(t *testing.T) {
	const n, size = 2500, 16_000
	for name, account := range map[string]*memory.Account{
		"shared ceiling": memory.NewAccount(0, memory.NewCeiling(4<<30)),
		"own ceiling":    memory.NewAccount(4<<30, nil),
		"no ceiling":     memory.NewAccount(0, nil),
		"no account":     nil,
	} {
		l := NewWriter(Config{Watch: "w", Account: account})
		revision := uint64(n)
		before := heapInUse()
		mustReplace(t, l, "e", revision, larges(n, size)...)
		served := l.Snapshot().Bytes()
		token := ""
		for range 6 {
			p, err := l.Page("", 10)
			if err != nil {
				t.Fatal(err)
			}
			token = p.Next
			rewrite(t, l, n, size, &revision)
			if all := l.Snapshot().Bytes() + l.pins.Held(); all > 2*served+served/16 {
				t.Errorf("%s: %d MiB are held by the log and its listings, %d MiB are served", name, all>>20, served>>20)
			}
		}
		if used := heapInUse() - before; used > 2*served+served/4 {
			t.Errorf("%s: the heap has grown by %d MiB, %d MiB are served", name, used>>20, served>>20)
		}
		if _, err := l.Page(token, 10); !errors.Is(err, ErrPageGone) {
			t.Errorf("%s: the page token of a state that was replaced as a whole: %v, want ErrPageGone", name, err)
		}
		if p, err := l.Page("", 10); err != nil || !rewritesSome(t, l, p, &revision) {
			t.Errorf("%s: the page token of a state that was replaced in part is gone: %v", name, err)
		}
	}
}

// rewritesSome changes a third of the log, and reports whether the listing of a page still goes on.
func rewritesSome(t *testing.T, l *Writer, p Page, revision *uint64) bool {
	asOf := *revision
	rewrite(t, l, 800, 16_000, revision)
	next, err := l.Page(p.Next, 10)
	return err == nil && next.Revision == asOf
}

// TestListingsOfAStoppedWatch are released: no version would be published by which
// they expire.
func TestListingsOfAStoppedWatch(t *testing.T) {
	account := memory.NewAccount(0, nil)
	l := NewWriter(Config{Watch: "w", Account: account})
	mustReplace(t, l, "e", 100, larges(100, 4000)...)
	if _, err := l.Page("", 10); err != nil {
		t.Fatal(err)
	}
	l.Discard(stream.Status{State: stream.Priming})
	if n := account.Own().Superseded(); n != 0 {
		t.Errorf("%d bytes are held of a log that was discarded", n)
	}
}
