package views

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// steps is a source that does what it is told.
type steps chan func(stream.Sink) error

// Watch implements stream.Source.
func (s steps) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	for {
		select {
		case step := <-s:
			if err := step(sink); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// upstream is a watch whose upstream the benchmark is.
type upstream struct {
	watch    *watch.Watch
	steps    chan func(stream.Sink) error
	revision uint64
}

func newUpstream(b *testing.B, resources int) *upstream {
	f := &upstream{steps: make(chan func(stream.Sink) error)}
	registry := watch.NewRegistry()
	b.Cleanup(registry.Close)
	source := steps(f.steps)
	var err error
	if f.watch, err = registry.Add(watch.Config{Name: "w", Source: source}); err != nil {
		b.Fatal(err)
	}
	f.steps <- func(s stream.Sink) error { return s.Reset("e") }
	f.revision = uint64(resources)
	f.steps <- func(s stream.Sink) error {
		for i := range resources {
			if err := s.Upsert(resourceOf(i, uint64(i+1), 0)); err != nil {
				return err
			}
		}
		return s.Commit(max(1, f.revision))
	}
	for !f.watch.Snapshot().Primed() {
		runtime.Gosched()
	}
	return f
}

func resourceOf(i int, revision uint64, n int) stream.Resource {
	return stream.Resource{Key: fmt.Sprintf("k/%d", i), Revision: revision, Value: fmt.Appendf(nil,
		`{"team":"t%d","n":%d,"load":%d,"tags":["a","b","c"],"text":%q}`, i%1000, n, uint32(i)*2654435761/1000, "some text that makes the value as long as values are, which is some three hundred bytes, so that there is something to read until the end of it is reached, and then some more, so that it is not too short, and more")}
}

func (f *upstream) commit(i int) {
	f.revision++
	r := resourceOf(i, f.revision, int(f.revision))
	f.steps <- func(s stream.Sink) error {
		if err := s.Upsert(r); err != nil {
			return err
		}
		return s.Commit(r.Revision)
	}
}

func openAll(b *testing.B, f *upstream, params func(i int) view.Params, n int) ([]*watch.Watch, *Views) {
	v := New(Config{Max: 2*n + 100, MaxPerClient: 2*n + 100, MaxBytes: 4 << 30})
	b.Cleanup(v.Close)
	var all []*watch.Watch
	for i := range n {
		d, err := view.Parse(params(i))
		if err != nil {
			b.Fatal(err)
		}
		w, err := v.Open(f.watch, d, Request{Client: "c"})
		if err != nil {
			b.Fatal(err)
		}
		s := w.Subscribe(log.SubscribeOptions{})
		b.Cleanup(s.Close)
		all = append(all, w)
	}
	for _, w := range all {
		for !w.Snapshot().Primed() {
			time.Sleep(time.Millisecond)
		}
	}
	return all, v
}

// BenchmarkCommit measures a commit of one resource until the view that it concerns has it.
func BenchmarkCommit(b *testing.B) {
	equality := func(i int) view.Params { return view.Params{Filter: fmt.Sprintf(`value.team == "t%d"`, i)} }
	prefix := func(i int) view.Params { return view.Params{Prefix: fmt.Sprintf("k/%d", i)} }
	scan := func(i int) view.Params { return view.Params{Filter: fmt.Sprintf(`value.n > 1 && value.n < %d`, i)} }
	for _, c := range []struct {
		name   string
		n      int
		params func(int) view.Params
	}{{"equality", 1, equality}, {"equality", 10_000, equality}, {"prefix", 10_000, prefix}, {"scan", 1, scan}, {"scan", 1000, scan}} {
		b.Run(fmt.Sprint(c.name, "/", c.n), func(b *testing.B) {
			f := newUpstream(b, 10_000)
			all, _ := openAll(b, f, c.params, c.n)
			for b.Loop() {
				changed := all[0].Changed()
				f.commit(0)
				<-changed
			}
		})
	}
}

// BenchmarkMemory measures what a view of ten resources holds.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		f := newUpstream(b, 10_000)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&before)
		all, v := openAll(b, f, func(i int) view.Params { return view.Params{Filter: fmt.Sprintf(`value.team == "t%d"`, i%1000)} }, 1000)
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1000, "B/view")
		b.ReportMetric(float64(v.holds())/1000, "counted/view")
		b.ReportMetric(float64(all[0].Snapshot().Count()), "resources")
	}
}

// BenchmarkBuild measures how long it takes to build a view.
func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct{ name, filter string }{
		{"equality", `value.team == "t%d" || value.team == "t1"`}, {"index", `value.team == "t%d"`}, {"macro", `value.exists(k, k == "team" && value[k] == "t%d")`},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newUpstream(b, 100_000)
			v := New(Config{})
			b.Cleanup(v.Close)
			i := 0
			for b.Loop() {
				d, err := view.Parse(view.Params{Filter: fmt.Sprintf(c.filter, i)})
				if err != nil {
					b.Fatal(err)
				}
				w, err := v.Open(f.watch, d, Request{Client: fmt.Sprint(i)})
				if err != nil {
					b.Fatal(err)
				}
				if err := w.Prime(b.Context()); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
