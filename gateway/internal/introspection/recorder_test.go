package introspection_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// rig is a recorder of scripted watches. Its clock is the fake one of its bubble, which tests can
// set.
type rig struct {
	*gatewaytest.Watches
	t        *testing.T
	recorder *introspection.Recorder
	lags     sync.Map // of uint64, by watch
}

func newRig(t *testing.T, watches ...string) *rig {
	r := &rig{Watches: gatewaytest.NewWatches(t, watches...), t: t}
	r.recorder = introspection.NewRecorder(r.Registry, func() map[string]uint64 {
		lags := map[string]uint64{}
		r.lags.Range(func(watch, lag any) bool { lags[watch.(string)] = lag.(uint64); return true })
		return lags
	})
	return r
}

// run runs the recorder until stop, or to the end of the test.
func (r *rig) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.recorder.Run(ctx) }()
	stop = func() { cancel(); <-done }
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) ask(step introspection.Step) introspection.SeriesAnswer {
	return r.recorder.Ask(introspection.SeriesQuery{Step: step, Limit: 100})
}

// only returns the figures of the only watch.
func (r *rig) only(step introspection.Step) introspection.WatchSeries {
	r.t.Helper()
	a := r.ask(step)
	if len(a.Watches) != 1 {
		r.t.Fatalf("%+v: want one watch", a)
	}
	return a.Watches[0]
}

// text writes figures as JSON does.
func text(t *testing.T, n interface{ MarshalJSON() ([]byte, error) }) string {
	t.Helper()
	out, err := n.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func states(w introspection.WatchSeries) string {
	var out []string
	for _, run := range w.States {
		out = append(out, fmt.Sprintf("%d %s", run.Samples, run.State))
	}
	return strings.Join(out, ", ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// TestFiguresOfAWatch checks what is recorded of a watch, second by second and in all.
func TestFiguresOfAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		r.run()
		time.Sleep(1100 * time.Millisecond) // the first second that is recorded begins
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		tally := r.recorder.TallyOf("a")
		for i := range uint64(3) {
			r.Commit("a", 2+i, gatewaytest.Resource("k", 2+i, "2"), gatewaytest.Resource("l", 2+i, "2"))
			tally.Sent(4, 100)
			tally.Written(10 * time.Millisecond)
			tally.Delivered(80 * time.Millisecond)
			r.lags.Store("a", i*7)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		got := r.only(introspection.Fine)
		want(t, "changes", text(t, got.Changes), "[2,2,2,0]")
		want(t, "events", text(t, got.Events), "[4,4,4,0]")
		want(t, "bytes", text(t, got.Bytes), "[100,100,100,0]")
		want(t, "lag", text(t, got.Lag), "[0,7,14,14]")
		want(t, "subscribers", text(t, got.Subscribers), "[0,0,0,0]")
		want(t, "reports", text(t, got.Reports), "[1,1,1,0]")
		want(t, "p50", text(t, got.LatencyP50), "[9.437,9.437,9.437,null]") // within a tenth
		want(t, "painted p99", text(t, got.DeliveryP99), text(t, got.DeliveryP99[:4]))
		want(t, "states", states(got), "4 in_sync")
		total := r.ask(introspection.Fine).Total
		want(t, "total", text(t, total.Changes), "[2,2,2,0]")
		if n := len(r.only(introspection.Coarse).Changes); n < 1 || n > 2 {
			t.Errorf("%d samples of ten seconds", n)
		}
	})
}

// TestFreshnessIsTheWorst checks that a second has the worst state of it, even one that lasted
// for less.
func TestFreshnessIsTheWorst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		r.run()
		time.Sleep(2100 * time.Millisecond)
		r.Prime("a", 1)
		time.Sleep(2 * time.Second)
		r.Do("a", func(sink stream.Sink) error { return sink.Status(stream.Stale, "behind") })
		time.Sleep(3 * time.Second)
		r.Do("a", func(sink stream.Sink) error { return sink.Status(stream.InSync, "") })
		time.Sleep(2 * time.Second)
		r.Do("a", func(sink stream.Sink) error { return sink.Status(stream.Stale, "behind") })
		time.Sleep(100 * time.Millisecond)
		r.Do("a", func(sink stream.Sink) error { return sink.Status(stream.InSync, "") })
		time.Sleep(2 * time.Second)
		want(t, "states", states(r.only(introspection.Fine)), "1 priming, 2 in_sync, 3 stale, 2 in_sync, 1 resyncing, 1 in_sync")
	})
}

// TestGapsAreMissing checks that no figures are made up for a time in which nothing ran, whether
// the clock that measures durations ran on or not.
func TestGapsAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		r.Prime("a", 1)
		synctest.Wait()
		now := time.Unix(1_800_000_000, 0)
		for _, wait := range []time.Duration{0, 1, 1, 60, 1, 1} { // suspended for a minute
			now = now.Add(wait * time.Second)
			r.recorder.Record(now)
		}
		got := r.only(introspection.Fine)
		want(t, "states", states(got), "2 in_sync, 59 , 3 in_sync")
		if got := text(t, got.Changes); strings.Count(got, "null") != 59 || strings.Count(got, "0") != 5 {
			t.Errorf("changes: %s", got)
		}
		want(t, "coarse", states(r.only(introspection.Coarse)), "1 in_sync, 5 , 1 in_sync")
	})
}

// TestClockIsSet checks that a clock that is set back begins new hours, and that small corrections
// lose no counts.
func TestClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		tally := r.recorder.TallyOf("a")
		now := time.Unix(1_800_000_000, 0)
		record := func(after time.Duration) {
			now = now.Add(after)
			tally.Sent(1, 1)
			r.recorder.Record(now)
		}
		record(0)
		record(time.Second)
		record(-time.Second) // corrected: this second was there already
		record(time.Second)
		record(time.Second)
		if a := r.ask(introspection.Fine); a.Samples != 2 || a.Start != 1_800_000_000 {
			t.Fatalf("%+v", a)
		}
		record(-time.Hour)
		if a := r.ask(introspection.Fine); a.Samples != 0 || len(a.Watches) != 0 {
			t.Errorf("after the clock was set back: %+v", a)
		}
		record(time.Second)
		record(time.Second)
		want(t, "events", text(t, r.only(introspection.Fine).Events), "[1,1]")
		for range 300 {
			record(365 * 24 * time.Hour) // a hostile clock
		}
		if a := r.ask(introspection.Fine); a.Samples != 300 {
			t.Errorf("%d samples", a.Samples)
		}
	})
}

// TestRecordingStops checks that nothing is kept while nobody can ask, nor after the end.
func TestRecordingStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		stop := r.run()
		w, _ := r.Registry.Watch("a")
		held := func() int64 { synctest.Wait(); return w.Memory().Kept() }
		before := held()
		time.Sleep(5 * time.Second)
		if n := held() - before; n < 25_000 || n > 28<<10 {
			t.Errorf("an hour takes %d bytes of the memory of its watch", n)
		}
		stop()
		r.recorder.Drop()
		time.Sleep(2 * time.Second)
		if a := r.ask(introspection.Fine); held() != before || a.Samples+len(a.Watches)+a.Count != 0 {
			t.Errorf("switched off: %d bytes, %+v", held()-before, a)
		}
		stop = r.run()
		time.Sleep(3 * time.Second)
		stop()
		r.recorder.Drop()
		if held() != before {
			t.Errorf("%d bytes are held at the end", held()-before)
		}
	})
}

// TestRemovedAndReplacedWatches checks that an hour ends with its watch, and goes on if a reload
// declares another watch of that name, whose memory it then counts for.
func TestRemovedAndReplacedWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		r.Prime("a", 1)
		for i := range uint64(5) {
			r.Commit("a", 2+i, gatewaytest.Resource("k", 2+i, "1"))
		}
		r.run()
		time.Sleep(5100 * time.Millisecond)
		a, _ := r.Registry.Watch("a")
		r.Registry.Remove("b")
		r.Replace(watch.Config{Name: "a", SourceName: "other"})
		other, _ := r.Registry.Watch("a")
		time.Sleep(2 * time.Second)
		got := r.only(introspection.Fine)
		want(t, "states", states(got), "4 in_sync, 2 priming")
		want(t, "changes", text(t, got.Changes), "[0,0,0,0,0,0]")
		if before, after := a.Memory().Kept(), other.Memory().Kept(); before != 0 || after < 25_000 {
			t.Errorf("the former watch holds %d bytes, the newer one %d", before, after)
		}
	})
}

// TestTemplatesAreAddedUp checks that a template has one hour for all its watches.
func TestTemplatesAreAddedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if _, err := r.Registry.AddTemplate(watch.TemplateConfig{
			Name: "t-{x}", Match: func(name string) bool { return strings.HasPrefix(name, "t-") },
			Make: func(string, string) (watch.Config, error) {
				return watch.Config{Source: stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
					err := errors.Join(sink.Reset("e"), sink.Commit(1), sink.Upsert(gatewaytest.Resource("k", 2, "1")), sink.Commit(2))
					<-ctx.Done()
					return err
				})}, nil
			},
		}); err != nil {
			t.Fatal(err)
		}
		r.run()
		time.Sleep(2100 * time.Millisecond)
		for _, name := range []string{"t-1", "t-2"} {
			w, err := r.Registry.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Prime(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.recorder.Tally(w).Sent(1, 1)
			r.lags.Store(name, uint64(3))
		}
		time.Sleep(time.Second)
		got := r.only(introspection.Fine)
		if got.Name != "t-{x}" || !got.Template {
			t.Errorf("%+v", got)
		}
		want(t, "states", states(got), "1 idle, 1 in_sync")
		want(t, "changes", text(t, got.Changes), "[0,2]")
		want(t, "events", text(t, got.Events), "[0,2]")
		want(t, "lag", text(t, got.Lag), "[0,3]")
		time.Sleep(2 * time.Minute) // both watches end
		got = r.only(introspection.Fine)
		want(t, "the end", fmt.Sprint(got.States[len(got.States)-1].State), "idle")
		if got := text(t, got.Changes); strings.Contains(got, "-") || strings.Count(got, "2") != 1 {
			t.Errorf("changes: %s", got)
		}
	})
}

// TestHoursCountAsMemory checks that a watch with little memory has no hour, that the ceiling of all
// watches has room for as many as fit into its hundredth, and that the answer says why.
func TestHoursCountAsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := memory.NewCeiling(6 << 20) // two hours fit
		r.Add(watch.Config{Name: "small", MaxBytes: 1 << 20, Memory: all})
		for _, name := range []string{"a", "b", "c"} {
			r.Add(watch.Config{Name: name, MaxBytes: 4 << 20, Memory: all})
		}
		r.run()
		time.Sleep(3100 * time.Millisecond)
		a := r.ask(introspection.Fine)
		small := slices.ContainsFunc(a.Without, func(l introspection.Lack) bool { return l.Name == "small" && strings.Contains(l.Reason, "no room") })
		if len(a.Watches) != 2 || len(a.Without) != 2 || !small || all.Kept() > all.Bytes()/100 {
			t.Errorf("%d bytes for %+v", all.Kept(), a)
		}
		want(t, "the total", fmt.Sprint(len(a.Total.Changes)), "2")
		r.Registry.Remove(a.Watches[0].Name)
		time.Sleep(11 * time.Minute)
		if a := r.ask(introspection.Fine); len(a.Watches) != 2 || len(a.Without) != 1 {
			t.Errorf("with room for another one: %+v", a)
		}
	})
}

// TestHoursAreBounded checks the limit for all watches together.
func TestHoursAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range introspection.MaxHours + 3 {
			r.Add(watch.Config{Name: fmt.Sprintf("w%d", i), OnDemand: true})
		}
		now := time.Now()
		for i := range 3 {
			r.recorder.Record(now.Add(time.Duration(i) * time.Second))
		}
		a := r.recorder.Ask(introspection.SeriesQuery{Step: introspection.Fine, Limit: 10_000})
		if len(a.Watches) != introspection.MaxHours || len(a.Without) != 3 || a.Without[0].Reason == "" {
			t.Errorf("%d hours, %+v", len(a.Watches), a.Without)
		}
		r.recorder.Drop()
	})
}

// BenchmarkRecord measures a second of a thousand watches.
func BenchmarkRecord(b *testing.B) {
	w := gatewaytest.NewWatches(b)
	for i := range 1000 {
		w.Add(watch.Config{Name: fmt.Sprintf("w%d", i), OnDemand: true})
	}
	r := introspection.NewRecorder(w.Registry, func() map[string]uint64 { return nil })
	now := time.Now()
	for b.Loop() {
		now = now.Add(time.Second)
		r.Record(now)
	}
}
