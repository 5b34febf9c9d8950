package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// TestRecentCommits checks which commits are remembered, and for how long.
func TestRecentCommits(t *testing.T) {
	var r recentCommits
	start := time.Now()
	after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	r.add(1, start)
	if _, known := r.find(1, start); known {
		t.Error("a commit before the first question is known")
	}
	r.add(10, after(100))
	r.add(11, after(110)) // too close to be kept
	r.add(20, after(200))
	for revision, want := range map[uint64]int{10: 100, 11: 100, 15: 100, 20: 200} {
		if at, known := r.find(revision, after(300)); !known || !at.Equal(after(want)) {
			t.Errorf("revision %d: %v after the start, %t", revision, at.Sub(start), known)
		}
	}
	for _, revision := range []uint64{9, 21} {
		if _, known := r.find(revision, after(300)); known {
			t.Errorf("revision %d is known", revision)
		}
	}
	if _, known := r.find(10, after(100).Add(commitMemory+1)); known {
		t.Error("an old commit is known")
	}
	for i := range 10_000 {
		r.add(uint64(100+i), after(1000+20*i))
	}
	if n := len(r.commits); n < mostCommits/2 || cap(r.commits) > mostCommits {
		t.Errorf("%d commits are kept, with room for %d: want at most %d", n, cap(r.commits), mostCommits)
	}
	r.clear()
	if _, known := r.find(100+9_999, after(1000+20*10_000)); known {
		t.Error("a commit of another order is known")
	}
}

// TestRecentCommitsFitIntoTheirMemory checks that commits beyond the ceiling take the place of the
// oldest ones, and that none is kept where there is no room at all.
func TestRecentCommitsFitIntoTheirMemory(t *testing.T) {
	for ceiling, want := range map[int64]int{
		100 * commitBytes * fewestCommits:      fewestCommits,
		100*commitBytes*fewestCommits*4 + 99:   4 * fewestCommits,
		100*commitBytes*fewestCommits - 1:      0,
		100 * commitBytes * int64(mostCommits): mostCommits,
	} {
		account := memory.NewAccount(ceiling, nil)
		r := recentCommits{account: account}
		start := time.Now()
		r.find(1, start)
		for i := range 5000 {
			r.add(uint64(i), start.Add(time.Duration(i)*commitSpacing))
		}
		end := start.Add(4999 * commitSpacing)
		if len(r.commits) != want || cap(r.commits) != want || account.Own().Kept() != int64(want)*commitBytes {
			t.Errorf("a ceiling of %d bytes: %d commits in room for %d, %d bytes counted; want %d commits", ceiling, len(r.commits), cap(r.commits), account.Own().Kept(), want)
		}
		for i := 5000 - want; i < 5000; i++ {
			if _, known := r.find(uint64(i), end); !known {
				t.Fatalf("a ceiling of %d bytes: revision %d is not known", ceiling, i)
			}
		}
		r.clear()
		if n := account.Own().Kept(); n != 0 {
			t.Errorf("%d bytes are counted of nothing", n)
		}
	}
}

// TestRecentCommitsAreForgotten checks that their memory is counted against the ceiling of all
// watches from the first question on, and given back when nobody asks any more, when another
// order begins, when an on-demand watch stops, and when a watch ends.
func TestRecentCommitsAreForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		onDemand bool
		forget   func(r *Registry, reset chan<- struct{}, close func())
	}{
		"nobody asks":     {forget: func(*Registry, chan<- struct{}, func()) { time.Sleep(2 * unaskedFor) }},
		"another order":   {forget: func(_ *Registry, reset chan<- struct{}, _ func()) { reset <- struct{}{} }},
		"a stop":          {onDemand: true, forget: func(_ *Registry, _ chan<- struct{}, unsubscribe func()) { unsubscribe(); time.Sleep(time.Minute) }},
		"the watch's end": {forget: func(r *Registry, _ chan<- struct{}, _ func()) { r.Remove("w") }},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := NewRegistry()
			defer r.Close()
			shared := memory.NewCeiling(1 << 30)
			commits, reset := make(chan uint64), make(chan struct{})
			w, err := r.Add(Config{Name: "w", OnDemand: c.onDemand, Memory: shared, Source: committing(commits, reset)})
			if err != nil {
				t.Fatal(err)
			}
			w.enter()
			synctest.Wait()
			commit := func(revision uint64) {
				commits <- revision
				synctest.Wait()
				time.Sleep(time.Second)
			}
			commit(2)
			if n := shared.Kept(); n != 0 {
				t.Errorf("%s: %d bytes are kept before the first question", name, n)
			}
			w.CommittedAt(2)
			for revision := range uint64(30) {
				commit(3 + revision)
			}
			if at, known := w.CommittedAt(12); !known || time.Since(at) != 21*time.Second {
				t.Errorf("%s: committed %v ago, %t", name, time.Since(at), known)
			}
			for range 3 { // asked about again and again
				time.Sleep(unaskedFor - time.Minute)
				w.CommittedAt(12)
			}
			if n := shared.Kept(); n != 2*fewestCommits*commitBytes || w.Memory().Kept() != n {
				t.Errorf("%s: %d and %d bytes are kept of 30 commits", name, n, w.Memory().Kept())
			}
			c.forget(r, reset, w.release)
			synctest.Wait()
			if n := shared.Kept(); n > fewestCommits*commitBytes || n > 0 && name != "another order" {
				t.Errorf("%s: %d bytes are kept after the end", name, n)
			}
			if _, known := w.CommittedAt(32); known {
				t.Errorf("%s: a commit is known after the end", name)
			}
		})
	}
}

// committing is a source that commits what it is told, and begins another order when it is told.
func committing(commits <-chan uint64, reset <-chan struct{}) stream.SourceFunc {
	return func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		begin := func(epoch string) error {
			if err := sink.Reset(epoch); err != nil {
				return err
			}
			return sink.Commit(1)
		}
		if err := begin("e"); err != nil {
			return err
		}
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case revision := <-commits:
				if err := sink.Upsert(stream.Resource{Key: "k", Revision: revision, Value: []byte("1")}); err != nil {
					return err
				}
				if err := sink.Commit(revision); err != nil {
					return err
				}
			case <-reset:
				if err := begin("f"); err != nil {
					return err
				}
			}
		}
	}
}

// BenchmarkRecentCommits measures what a commit costs a watch that nobody asks about, and one
// that somebody does.
func BenchmarkRecentCommits(b *testing.B) {
	for name, asked := range map[string]bool{"unasked": false, "asked": true} {
		b.Run(name, func(b *testing.B) {
			var r recentCommits
			start := time.Now()
			if asked {
				r.find(1, start)
			}
			for i := range uint64(b.N) {
				r.add(i, start.Add(time.Duration(i)*time.Millisecond))
			}
		})
	}
}
