package etcd

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// recalling returns a fake at revision 50 that knows what was deleted before, and whose watch of
// that is served by past.
func recalling(past func(w *fakeWatch)) *fake {
	f := &fake{revision: 50, applied: 60, inUse: 1 << 10, kvs: []*mvccpb.KeyValue{stored("a", 3)}}
	f.watches = func(w *fakeWatch) {
		if len(w.create.GetFilters()) > 0 {
			past(w)
			return
		}
		w.idle()
	}
	return f
}

// told returns what the sink was told of the time before its first state; "nothing" if it was not.
func told(r *streamtest.SinkRecorder) string {
	e := r.Earlier()
	if e == nil {
		return "nothing"
	}
	return fmt.Sprintf("%v after %d", e.Deletes, e.After)
}

// compacts cancels a watch from before what is known.
func (w *fakeWatch) compacts(revision int64) bool {
	if w.create.GetStartRevision() > revision {
		return false
	}
	w.answer(&etcdserverpb.WatchResponse{Canceled: true, CompactRevision: revision})
	return true
}

// TestHistory: what was deleted before the first state is handed over with it, as far back as the
// member knows, or as is asked. Nothing else is changed by it, whatever becomes of it.
func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		past    func(w *fakeWatch)
		change  func(f *fake)
		want    string
		patient bool // the first state waits in vain
	}{
		"all of it": {past: func(w *fakeWatch) {
			w.say(del("x", 7), del("y", 9))
			w.say(del("x", 12))
			w.idle()
		}, want: "map[x:12 y:9] after 0"},
		"as far as it is not compacted": {past: func(w *fakeWatch) {
			if !w.compacts(20) {
				w.say(del("x", 21))
				w.idle()
			}
		}, want: "map[x:21] after 20"},
		"compacted again meanwhile": {past: func(w *fakeWatch) {
			w.say(del("gone", 1+w.create.GetStartRevision()))
			if !w.compacts(20) && !w.compacts(30) {
				w.idle()
			}
		}, want: "map[gone:32] after 30"},
		"compacted up to now":       {past: func(w *fakeWatch) { w.compacts(50) }, want: "map[] after 50"},
		"compacted again and again": {past: func(w *fakeWatch) { w.compacts(w.create.GetStartRevision()) }, want: "nothing"},
		"compacted before its beginning": {past: func(w *fakeWatch) {
			w.answer(&etcdserverpb.WatchResponse{Canceled: true, CompactRevision: w.create.GetStartRevision() - 1})
		}, change: func(f *fake) { f.revision, f.applied = 30_000, 60_000 }, want: "nothing"},
		"not so far back": {past: func(w *fakeWatch) { w.idle() },
			change: func(f *fake) { f.revision, f.applied = 30_000, 60_000 }, want: "map[] after 10000"},
		"large changes": {past: func(w *fakeWatch) { w.idle() },
			change: func(f *fake) { f.revision, f.applied, f.inUse = 30_000, 60_000, 1<<30 }, want: "map[] after 29000"},
		"puts that are not filtered": {past: func(w *fakeWatch) { w.say(put("b", 7), del("x", 8)); w.idle() }, want: "map[x:8] after 0"},
		"an answer in fragments": {past: func(w *fakeWatch) {
			w.fragment(false, del("x", 7))
			w.fragment(true, del("y", 7))
			w.idle()
		}, want: "map[x:7 y:7] after 0"},
		"a server of before the fix": {past: (*fakeWatch).idle, change: func(f *fake) { f.version = "3.5.17" }, want: "nothing"},
		"a store of another history": {past: (*fakeWatch).idle, change: func(f *fake) { f.applied = 49 }, want: "nothing"},
		"no answer":                  {past: (*fakeWatch).mute, want: "nothing", patient: true},
		"never at the present": {past: func(w *fakeWatch) {
			for w.progress(49) {
			}
		}, want: "nothing", patient: true},
		"canceled":   {past: func(w *fakeWatch) { w.answer(&etcdserverpb.WatchResponse{Canceled: true, CancelReason: "no"}) }, want: "nothing"},
		"ended":      {past: func(*fakeWatch) {}, want: "nothing"},
		"going back": {past: func(w *fakeWatch) { w.say(del("x", 9), del("y", 8)); w.idle() }, want: "nothing"},
		"from before what was asked": {past: func(w *fakeWatch) { w.say(del("x", 9)); w.idle() },
			change: func(f *fake) { f.revision, f.applied = 30_000, 60_000 }, want: "nothing"},
		"of other keys": {past: func(w *fakeWatch) { e := del("x", 9); e.Kv.Key = []byte("q/x"); w.say(e); w.idle() }, want: "nothing"},
		"of another store": {past: func(w *fakeWatch) {
			w.answer(&etcdserverpb.WatchResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: 8}})
		}, want: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, began := recalling(c.past), time.Now()
				if c.change != nil {
					c.change(f)
				}
				r, err := watched(t, f.serve(t, Config{}), stream.Resume{}, commits(1))
				if err != nil {
					t.Fatal(err)
				}
				wantShown(t, r, fmt.Sprintf("%d: a@3", f.revision))
				if got := told(r); got != c.want {
					t.Errorf("told %s, want %s", got, c.want)
				}
				if took := time.Since(began); took > historyPatience+time.Second || !c.patient && took >= historyPatience {
					t.Errorf("the first state took %v", took)
				}
			})
		})
	}
}

// TestHistoryWhileListing: what the watch reports itself belongs to it, and what is created again is
// no delete.
func TestHistoryWhileListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := recalling(nil)
		f.kvs = append(f.kvs, stored("c", 55))
		f.watches = func(w *fakeWatch) {
			if len(w.create.GetFilters()) > 0 {
				w.say(del("x", 7), del("c", 8))
				w.idle()
				return
			}
			w.advance(60)
			w.say(put("c", 55), del("b", 56))
			w.idle()
		}
		r, err := watched(t, f.serve(t, Config{}), stream.Resume{}, commits(1))
		if err != nil {
			t.Fatal(err)
		}
		wantShown(t, r, "60: a@3 c@55")
		if e := r.Earlier(); e == nil || e.After != 0 || !maps.Equal(e.Deletes, map[string]uint64{"x": 7, "c": 8, "b": 56}) {
			t.Errorf("told %s", told(r))
		}
	})
}

// TestHistoryIsBounded: the older half is forgotten if it takes too much memory, and all of it is
// counted while it is held.
func TestHistoryIsBounded(t *testing.T) {
	const most = 256 << 10
	f := recalling(func(w *fakeWatch) {
		for i := range int64(40) {
			w.say(del(fmt.Sprint("x", i), 2+i), del(fmt.Sprint("y", i), 2+i))
		}
		w.idle()
	})
	sink, err := f.follow(t, most, commits(1))
	if err != nil {
		t.Fatal(err)
	}
	e := sink.Earlier()
	if e == nil || e.After < 2 || e.After > 35 || len(e.Deletes) != 2*int(41-e.After) {
		t.Errorf("told %s", told(sink.SinkRecorder))
	}
	if held, peak := sink.Held(); held != 0 || peak < most/64 {
		t.Errorf("%d bytes were counted, %d are left", peak, held)
	}
}

// TestHistoryIsNotTriedAgain after a connection that failed with it, in case it was too much.
func TestHistoryIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := recalling((*fakeWatch).mute)
		f.onRange = func(n int, f *fake) {
			if n == 2 { // after the number of keys, or as the list: either is the end of the connection
				f.cluster = 8
			}
		}
		source := f.serve(t, Config{})
		if _, err := watched(t, source, stream.Resume{}, never); err == nil {
			t.Fatal("no error")
		}
		synctest.Wait() // the watch of the history may have been on its way
		f.mu.Lock()
		f.onRange, f.opened = nil, 0
		f.mu.Unlock()
		r, err := watched(t, source, stream.Resume{}, commits(1))
		if err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.opened != 1 || told(r) != "nothing" {
			t.Errorf("%d watches, told %s", f.opened, told(r))
		}
	})
}

// TestNoHistory: a source that is to ask for no history does not.
func TestNoHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := recalling((*fakeWatch).idle)
		r, err := watched(t, f.serve(t, Config{NoHistory: true}), stream.Resume{}, commits(1))
		if err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.opened != 1 || told(r) != "nothing" {
			t.Errorf("%d watches, told %s", f.opened, told(r))
		}
	})
}
