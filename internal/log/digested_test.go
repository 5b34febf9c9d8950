package log

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// digestOf computes the digest of a state from its resources.
func digestOf(v Snapshot) (d digest.Digest) {
	for r := range v.Resources() {
		d = d.Add(digest.Of(r.Key, r.Value, r.Encoding))
	}
	return d
}

// TestDigest: the digest of a log, and of a part of it, is that of its resources, whatever has
// happened to it.
func TestDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 5}})
		part := NewView(w.Log, Config{Watch: "w"})
		revision, epoch := uint64(1), "e"
		changes := func() (all []Change) {
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				key := fmt.Sprint("key-", rapid.IntRange(0, 30).Draw(t, "key"))
				if revision++; rapid.Bool().Draw(t, "deletes") {
					all = append(all, remove(key, revision))
					continue
				}
				c := upsert(key, revision)
				if rapid.Bool().Draw(t, "base64") {
					c.Value, c.Encoding = []byte(`"aGk="`), stream.Base64
				}
				all = append(all, c)
			}
			return all
		}
		snapshot := func() (all []stream.Resource) {
			for _, c := range LastOfEachKey(changes()) {
				if !c.Deleted {
					all = append(all, c.Resource)
				}
			}
			return all
		}
		if _, err := w.Replace(epoch, snapshot(), revision); err != nil {
			t.Fatal(err)
		}
		begun := false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				if rapid.Bool().Draw(t, "restored") {
					epoch += "x"
				}
				_, _ = w.Replace(epoch, snapshot(), revision) // one that goes back is refused
			default:
				if _, err := w.Commit(changes(), revision); err != nil {
					t.Fatal(err)
				}
			}
			if v := w.Snapshot(); v.Digest() != digestOf(v) {
				t.Fatalf("the digest is %v, that of the resources %v", v.Digest(), digestOf(v))
			}
			begun = begun || rapid.Bool().Draw(t, "a part")
			if !begun {
				continue
			}
			v := w.Snapshot()
			part.Begin(v, "p", 0)
			for e := range v.Entries(0) {
				if v.Counts(e) && !e.Deleted() && strings.HasSuffix(e.Resource().Key, "1") {
					part.Add(e, nil)
				}
			}
			part.Publish(v)
			if v := part.Log().Snapshot(); v.Digest() != digestOf(v) {
				t.Fatalf("the digest of a part is %v, that of its resources %v", v.Digest(), digestOf(v))
			}
		}
	})
}

// TestVerify: a reader whose position cannot be resumed is sent what has changed since then, if that
// is little, and the digest of what it has to have.
func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(Config{Watch: "w"})
		var all []Change
		for i := range uint64(100) {
			all = append(all, upsert(fmt.Sprint("k", i), i+1))
		}
		mustReplace(t, w, "e", 100, all...)
		mustCommit(t, w, 101, upsert("new", 101))
		inSync(w)
		want := w.Snapshot().Digest().String()
		for name, r := range map[string]stream.Position{
			"end_of_snapshot 101 verify, upsert new@101": {Watch: "w", Epoch: "e", Upserts: 100, AsOf: 100},
			"end_of_snapshot 101 verify":                 {Watch: "w", Epoch: "e", Upserts: 7, AsOf: 7},
			"end_of_snapshot 101 verify, other":          {Watch: "w", Epoch: "old", Upserts: 100, AsOf: 100},
			"end_of_snapshot 101 verify, ahead":          {Watch: "w", Epoch: "e", Upserts: 500, AsOf: 500},
		} {
			if r.Upserts == 100 && r.Epoch == "e" {
				r.Upserts, r.AsOf = 99, 99 // before the first snapshot ended
			}
			s := w.Subscribe(SubscribeOptions{Resume: &r, Digest: true, Verify: true})
			c, b, ids := &client{state: map[string]string{}}, Batch{}, 0
			for range 2 {
				for s.Next(&b) {
					c.apply(&b)
					for e := range b.Events() {
						switch {
						case e.Type == stream.Reset:
							t.Errorf("%s: a reset", name)
						case e.Type == stream.EndOfSnapshot && (!e.Verify || !e.Resumed || e.Digest != want || !b.Boundary()):
							t.Errorf("%s: %+v, at a boundary %t; want the digest %s", name, e, b.Boundary(), want)
						case e.Type == stream.Upsert && b.Boundary() && b.Count(stream.EndOfSnapshot) == 0:
							ids++
						}
					}
				}
				time.Sleep(DefaultAheadWait) // a position that is ahead
			}
			upserts := strings.Count(strings.Join(c.take(), " "), "upsert")
			if most := strings.Count(name, "upsert") * 10; ids > 0 || upserts > most || most > 0 && upserts == 0 {
				t.Errorf("%s: %d upserts, %d ids before the end", name, upserts, ids)
			}
			mustCommit(t, w, w.Snapshot().Revision()+1) // live
			if !s.Bookmark(&b) {
				t.Errorf("%s: no bookmark", name)
			}
			for e := range b.Events() {
				if e.Digest != want {
					t.Errorf("%s: the digest of the bookmark is %q, want %q", name, e.Digest, want)
				}
			}
			s.Close()
		}
	})
}

// TestDigested: readers that come within a second share a state. It is kept for 10 s, and shows the
// table, the keys and the resources of then.
func TestDigested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(Config{Watch: "w"})
		var all []Change
		for i := range uint64(1000) {
			all = append(all, upsert(fmt.Sprint("k", i), i+1))
		}
		mustReplace(t, w, "e", 1000, all...)
		inSync(w)
		was := w.Snapshot().Digest()
		end := func() string {
			s := w.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "old", Upserts: 1, AsOf: 1}, Digest: true, Verify: true})
			defer s.Close()
			var b Batch
			for s.Next(&b) {
				for e := range b.Events() {
					if e.Verify {
						return e.Digest
					}
				}
			}
			return ""
		}
		first := end()
		mustCommit(t, w, 1001, remove("k5", 1001), upsert("k6", 1001))
		if again := end(); first != was.String() || again != first {
			t.Fatalf("two readers of one second are sent %s and %s", first, again)
		}
		d, ok := w.Digested(was)
		if !ok {
			t.Fatal("the state is gone at once")
		}
		table, ok := d.Table()
		want := digest.NewTable(1000)
		for _, c := range all {
			want.Add(digest.OfKey(c.Key), digest.Of(c.Key, c.Value, c.Encoding))
		}
		if !ok || !slices.Equal(table, want) {
			t.Error("the table is not that of the state")
		}
		found := 0
		for b := range table {
			for from, more := 0, true; more; {
				var keys []KeyHash
				if keys, more, ok = d.Keys(b, from, 10); !ok || len(keys) == 0 && more {
					t.Fatalf("bucket %d has no keys from the %d-th on", b, from)
				}
				from += len(keys)
				found += len(keys)
			}
		}
		if found != 1000 {
			t.Errorf("%d keys in all buckets", found)
		}
		for _, key := range []string{"k5", "k6", "k999"} {
			if r, exists, ok := d.Get(key); !exists || !ok || r.Revision > 1000 {
				t.Errorf("%s: %+v, %t, %t", key, r, exists, ok)
			}
		}
		if _, exists, ok := d.Get("never"); exists || !ok {
			t.Errorf("a key that is not there: %t, %t", exists, ok)
		}
		if _, ok := w.Digested(digest.Digest{Count: 7}); ok {
			t.Error("there is a state with any digest")
		}
		time.Sleep(digestedShared + 1)
		if later := end(); later == first {
			t.Error("a reader that comes later shares the state too")
		}
		time.Sleep(digestedKept)
		if _, ok := w.Digested(was); ok {
			t.Error("the state is kept after its time")
		}
		if now := w.Snapshot().Digest(); now == was {
			t.Error("a commit did not change the digest")
		} else if _, ok := w.Digested(now); !ok {
			t.Error("the newest state cannot be asked for")
		}
	})
}

// TestDigestedStatesAreFew: however many readers come, few states are kept, and however much is asked for, what readers
// were sent is kept.
func TestDigestedStatesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(Config{Watch: "w"})
		mustReplace(t, w, "e", 1, upsert("a", 1))
		inSync(w)
		sent := w.digested.take(w.Log, w.Snapshot().v).Digest
		for revision := range uint64(1000) {
			mustCommit(t, w, revision+2, upsert("a", revision+2))
			w.Digested(w.Snapshot().Digest())
			time.Sleep(5 * time.Millisecond)
			if _, ok := w.Digested(sent); !ok {
				t.Fatalf("the state that a reader was sent is gone after %d requests for others", revision)
			}
		}
		for range 100 {
			w.digested.take(w.Log, w.Snapshot().v)
			time.Sleep(digestedShared)
			revision := w.Snapshot().Revision() + 1
			mustCommit(t, w, revision, upsert("a", revision))
		}
		if n := len(w.digested.kept); n > mostDigested+mostCommon {
			t.Errorf("%d states are kept, want at most %d", n, mostDigested+mostCommon)
		}
		time.Sleep(commonFor + digestedKept)
		mustCommit(t, w, 5000, upsert("a", 5000))
		if n := len(w.digested.kept); n > 0 || w.digested.asked != nil {
			t.Errorf("%d states are kept although nobody has verified anything for long", n)
		}
	})
}

// TestDigestedAtAnotherReplica: a reader that was sent a digest by one replica can ask another one, at any rate of changes.
func TestDigestedAtAnotherReplica(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var replicas [3]*Writer
				for i := range replicas {
					replicas[i] = NewWriter(Config{Watch: "w"})
					mustReplace(t, replicas[i], "e", 1, upsert("a", 1))
					inSync(replicas[i])
					replicas[i].Digested(digest.Digest{Count: 7}) // the first request, which is in vain
				}
				var tried, failed atomic.Int64
				revision := uint64(1)
				next := time.Now().Add(5 * time.Second)
				for end := time.Now().Add(40 * time.Second); time.Now().Before(end); {
					revision++
					for i, w := range replicas {
						mustCommit(t, w, revision, upsert(fmt.Sprint("k", revision%50), revision))
						if i == 0 {
							time.Sleep(every / 10) // the others are a little later
						}
					}
					time.Sleep(every - every/10)
					if time.Now().Before(next) {
						continue
					}
					next = time.Now().Add(700 * time.Millisecond)
					sent := replicas[0].digested.take(replicas[0].Log, replicas[0].Snapshot().v).Digest
					for _, w := range replicas[1:] {
						for _, after := range []time.Duration{0, 300 * time.Millisecond, time.Second} {
							time.AfterFunc(after, func() {
								tried.Add(1)
								if _, ok := w.Digested(sent); !ok {
									failed.Add(1)
								}
							})
						}
					}
				}
				time.Sleep(2 * time.Second)
				t.Logf("%d of %d requests at another replica are in vain", failed.Load(), tried.Load())
				if tried.Load() == 0 || failed.Load()*20 > tried.Load() {
					t.Errorf("%d of %d requests at another replica are in vain", failed.Load(), tried.Load())
				}
			})
		})
	}
}

// TestIndexOfDigestedState is counted for as long as it is there, and is gone after a while although
// nothing is written.
func TestIndexOfDigestedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.NewAccount(64<<20, nil)
		w := NewWriter(Config{Watch: "w", Account: a})
		var all []Change
		for i := range uint64(1000) {
			all = append(all, upsert(fmt.Sprint("k", i), i+1))
		}
		mustReplace(t, w, "e", 1000, all...)
		inSync(w)
		kept := func() int64 { return a.Own().Superseded() - w.pins.Held() - w.dead }
		table := func() {
			t.Helper()
			d, ok := w.Digested(w.Snapshot().Digest())
			if !ok {
				t.Fatal("the newest state is not there")
			}
			if _, ok := d.Table(); !ok {
				t.Fatal("no table")
			}
		}
		table()
		if got := kept(); got < 16*1000 {
			t.Errorf("%d bytes are counted for an index of 1,000 resources", got)
		}
		before := kept()
		d, _ := w.Digested(w.Snapshot().Digest())
		text := func() string {
			t.Helper()
			text, n, ok := d.Rendered(3, func(keys []KeyHash) []byte { return fmt.Append(nil, keys, time.Now()) })
			if want, _, _ := d.Keys(3, 0, 1000); !ok || n != len(want) || n == 0 {
				t.Fatalf("%d keys are rendered of a bucket of %d", n, len(want))
			}
			return string(text)
		}
		first := text()
		time.Sleep(time.Second)
		if again := text(); again != first {
			t.Error("a bucket is rendered twice")
		}
		if got := kept() - before; got < int64(len(first)) || got > int64(len(first))+100 {
			t.Errorf("%d bytes are counted for a text of %d", got, len(first))
		}
		time.Sleep(digestedKept)
		synctest.Wait()
		if got := kept(); got != 0 {
			t.Errorf("%d bytes are counted after its time", got)
		}
		for i := range uint64(5) { // each state has an index, and the two newest keep it
			mustCommit(t, w, 1001+i, upsert("k0", 1001+i))
			table()
		}
		if got := kept(); got < 2*16*1000 || got > 3*16*1000 {
			t.Errorf("%d bytes are counted for five states, want those of two", got)
		}
		w.pins.TakeAll()
		mustCommit(t, w, 1010, upsert("k0", 1010))
		if got := kept(); got != 0 {
			t.Errorf("%d bytes are counted for states that were taken away", got)
		}
	})
}

// TestSharedAnswers: an answer is made once for all who ask for the same at once, few are kept, and they
// are counted.
func TestSharedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.NewAccount(64<<20, nil)
		w := NewWriter(Config{Watch: "w", Account: a})
		mustReplace(t, w, "e", 1, upsert("k", 1))
		inSync(w)
		kept := func() int64 { return a.Own().Superseded() - w.pins.Held() - w.dead }
		d, _ := w.Digested(w.Snapshot().Digest())
		if _, ok := d.Kept("a"); ok {
			t.Error("an answer is there that nobody has made")
		}
		made := 0
		share := func(name string, size int) Shared {
			if err := d.TakeTurn(t.Context()); err != nil {
				t.Error(err)
			}
			defer d.EndTurn()
			got, ok, err := d.Share(name, func() (Shared, error) {
				made++
				return Shared{Body: make([]byte, size), Coding: "gzip", Size: 2 * size}, nil
			})
			if !ok || err != nil || len(got.Body) != size || got.Coding != "gzip" || got.Size != 2*size {
				t.Errorf("%s: %d bytes, %t, %v", name, len(got.Body), ok, err)
			}
			return got
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { share("a", 1000) })
		}
		all.Wait()
		if got, ok := d.Kept("a"); made != 1 || !ok || len(got.Body) != 1000 {
			t.Errorf("made %d times, kept: %t", made, ok)
		}
		empty := kept() - 1000
		for i := range 3 * mostShared {
			share(fmt.Sprint("b", i), 1000)
		}
		if got := kept() - empty; got < mostShared*1000 || got > mostShared*1100 {
			t.Errorf("%d bytes are counted for %d answers of 1,000", got, mostShared)
		}
		if _, ok := d.Kept("a"); ok {
			t.Error("the oldest answer is kept beside the newest ones")
		}
		share("large", mostSharedBytes+1)
		if _, ok := d.Kept("large"); ok {
			t.Error("an answer is kept that is too large")
		}
		broken := errors.New("it cannot be made")
		if _, _, err := d.Share("c", func() (Shared, error) { return Shared{}, broken }); err != broken {
			t.Errorf("error %v", err)
		}
		if _, ok := d.Kept("c"); ok {
			t.Error("an answer is kept that was not made")
		}
		time.Sleep(digestedKept)
		synctest.Wait()
		if got := kept(); got != 0 {
			t.Errorf("%d bytes are counted after their time", got)
		}
		if _, ok := d.Kept("b23"); ok {
			t.Error("an answer is kept after its time")
		}
		_ = d.TakeTurn(t.Context())
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.TakeTurn(within); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two have the turn: %v", err)
		}
	})
}

// TestDigestsTurnedOff: a reader that is being sent what has changed since its position, to verify the rest, begins again
// once digests are turned off. It is not of one cohort with a reader that never gets a digest in place of a reset.
func TestDigestsTurnedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(Config{Watch: "w"})
		var all []Change
		for i := range uint64(3000) {
			c := upsert(fmt.Sprint("k", i), i+1)
			c.Value = fmt.Appendf(nil, "%q", strings.Repeat("x", 1000))
			all = append(all, c)
		}
		mustReplace(t, w, "e", 3000, all...)
		inSync(w)
		off := new(atomic.Bool)
		options := SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: 2800, AsOf: 2800}, Digest: true, Verify: true, DigestsOff: off}
		s := w.Subscribe(options)
		defer s.Close()
		var b Batch
		if !s.Next(&b) || b.Count(stream.Upsert) == 0 || b.Count(stream.EndOfSnapshot) > 0 {
			t.Fatalf("the first flush has %d upserts, %d ends", b.Count(stream.Upsert), b.Count(stream.EndOfSnapshot))
		}
		off.Store(true)
		c := &client{state: map[string]string{}}
		resets, ends := 0, 0
		for s.Next(&b) {
			c.apply(&b)
			resets, ends = resets+b.Count(stream.Reset), ends+b.Count(stream.EndOfSnapshot)
			for e := range b.Events() {
				if e.Digest != "" || e.Verify {
					t.Errorf("after digests were turned off: %+v", e)
				}
			}
		}
		if resets != 1 || ends != 1 || len(c.state) != 3000 {
			t.Errorf("%d resets, %d ends of a snapshot, %d resources", resets, ends, len(c.state))
		}
		told := w.Subscribe(SubscribeOptions{Digest: true, DigestsOff: off})
		defer told.Close()
		for told.Next(&b) {
		}
		if !told.CaughtUp() || !s.CaughtUp() || NewCohort(told).Admits(s) {
			t.Error("a reader that is sent digests in place of a reset is of one cohort with another one")
		}
	})
}

// TestVerifyInTheMiddle: a catch-up that cannot go on, since its version was taken away and deletes are forgotten, or since
// another order has begun, ends with a digest in place of a reset. A snapshot begins again.
func TestVerifyInTheMiddle(t *testing.T) {
	const n = 3000
	for _, test := range []struct {
		name   string
		resume *stream.Position
		live   bool // it has caught up before, and fell behind
		cut    func(t testing.TB, w *Writer)
		reason string // of a reset; "": there is none
	}{
		{"deletes are forgotten while it resumes", &stream.Position{Watch: "w", Epoch: "e", Upserts: n, AsOf: n}, false, forgetDeletes, ""},
		{"another order while it resumes", &stream.Position{Watch: "w", Epoch: "e", Upserts: n, AsOf: n}, false, otherOrder, ""},
		{"deletes are forgotten while it catches up", nil, true, forgetDeletes, ""},
		{"another order while it catches up", nil, true, otherOrder, ""},
		{"deletes are forgotten in the first snapshot", nil, false, forgetDeletes, "expired"},
		{"another order in the first snapshot", nil, false, otherOrder, "epoch_changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 50}})
				large := func(revision uint64, value string) (all []Change) {
					for i := range uint64(n) {
						c := upsert(fmt.Sprint("k", i), revision+i+1)
						c.Value = fmt.Appendf(nil, "%q", strings.Repeat(value, 1000))
						all = append(all, c)
					}
					return all
				}
				mustReplace(t, w, "e", n, large(0, "x")...)
				inSync(w)
				s := w.Subscribe(SubscribeOptions{Resume: test.resume, Digest: true, Verify: true})
				defer s.Close()
				c, b := &client{state: map[string]string{}}, Batch{}
				for test.live && s.Next(&b) {
					c.apply(&b)
				}
				if test.live || test.resume != nil {
					mustCommit(t, w, 2*n, large(n, "y")...)
				}
				for b.Count(stream.Upsert) == 0 {
					if !s.Next(&b) || b.Count(stream.EndOfSnapshot) > 0 {
						t.Fatal("the first flush has nothing, or all")
					}
					c.apply(&b)
				}
				test.cut(t, w)
				reasons, last := []string(nil), stream.Event{}
				for s.Next(&b) {
					c.apply(&b)
					for e := range b.Events() {
						if e.Type == stream.Reset {
							reasons = append(reasons, e.Reason)
						}
						if e.Type == stream.EndOfSnapshot {
							last = e
						}
					}
				}
				want := []string{test.reason}
				if test.reason == "" {
					want = nil
				}
				if !slices.Equal(reasons, want) || last.Verify != (test.reason == "") || last.Digest != w.Snapshot().Digest().String() {
					t.Errorf("resets %q, want %q; in the end %+v", reasons, want, last)
				}
				if !s.CaughtUp() {
					t.Error("it has not caught up")
				}
			})
		})
	}
}

func forgetDeletes(t testing.TB, w *Writer) {
	w.pins.TakeAll()
	for i := range uint64(200) {
		revision := w.Snapshot().Revision() + 1
		mustCommit(t, w, revision, remove(fmt.Sprint("k", i), revision))
	}
}

func otherOrder(t testing.TB, w *Writer) { mustReplace(t, w, "f", 7, upsert("k1", 7)) }
