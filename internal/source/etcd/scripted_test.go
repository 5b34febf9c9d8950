package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// fault is one way in which a member is wrong or hostile.
type fault struct {
	name    string
	member  fake   // static: copied for the row
	want    error  // the class of the error of Watch
	outcome string // what the source does, and the error has in its text
}

// page answers every page of the list with the same keys.
func samePage(more bool, count int64, kvs ...*mvccpb.KeyValue) func(*etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
	return func(*etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
		return &etcdserverpb.RangeResponse{
			Header: &etcdserverpb.ResponseHeader{ClusterId: 7, Revision: 9}, Kvs: kvs, More: more, Count: count,
		}
	}
}

// goingBack answers each page with an older revision than the one before.
func goingBack() func(*etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
	revision := int64(9)
	return func(*etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
		revision--
		return &etcdserverpb.RangeResponse{
			Header: &etcdserverpb.ResponseHeader{ClusterId: 7, Revision: revision}, More: true, Count: 9,
			Kvs: []*mvccpb.KeyValue{stored(fmt.Sprint("k", 10-revision), 3)},
		}
	}
}

// after says what follows a first state at 5.
func after(say func(w *fakeWatch)) func(*fakeWatch) {
	return func(w *fakeWatch) {
		w.progress(5)
		say(w)
		w.idle()
	}
}

// answer sends a response as it is.
func (w *fakeWatch) answer(r *etcdserverpb.WatchResponse) { w.Send(r) }

func scriptedFaults() []*fault {
	endless := func(w *fakeWatch) { // no fake time passes meanwhile, so it ends
		for range 100_000 {
			if w.Send(&etcdserverpb.WatchResponse{Created: true}) != nil {
				return
			}
		}
	}
	return []*fault{
		{"the same page again and again", fake{onPage: samePage(true, 9, stored("a", 3))}, stream.ErrInvalid, "want rising keys"},
		{"a page whose keys fall", fake{onPage: samePage(false, 2, stored("b", 3), stored("a", 3))}, stream.ErrInvalid, "want rising keys"},
		{"an empty page, and more", fake{onPage: samePage(true, 2)}, stream.ErrInvalid, "an empty page of the list"},
		{"an empty page that counts no keys, and more", fake{onPage: samePage(true, 0)}, stream.ErrInvalid, "an empty page of the list"},
		{"fewer keys than are counted", fake{onPage: samePage(false, 2, stored("a", 3))}, stream.ErrInvalid, "the last page of the list has 1 keys of 2"},
		{"pages that go back in revision", fake{onPage: goingBack()}, stream.ErrInvalid, "a page of the list is of revision 7, after one of 8"},
		{"a page of another cluster", fake{onPage: func(*etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
			return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: 8, Revision: 9}}
		}}, errReplaced, "cluster id is 8, was 7"},
		{"a watch that is never created", fake{silent: true}, stream.ErrStalled, "no answer to a request"},
		{"a watch that is created again and again", fake{watches: endless}, stream.ErrInvalid, "created first, and once"},
		{"an event of an unknown type", fake{watches: after(func(w *fakeWatch) {
			e := put("a", 6)
			e.Type = 7
			w.say(e)
		})}, stream.ErrInvalid, "an event of type 7"},
		{"two changes with one revision", fake{watches: after(func(w *fakeWatch) { w.say(put("a", 6)); w.say(put("a", 6)) })}, stream.ErrOrder, "changed at 6, after everything up to 6"},
		{"a delete and a put with one revision", fake{watches: after(func(w *fakeWatch) { w.say(del("a", 6)); w.say(put("a", 6)) })}, stream.ErrOrder, "changed at 6, after everything up to 6"},
		{"an older change of another key", fake{watches: after(func(w *fakeWatch) { w.say(put("a", 7)); w.say(put("b", 6)) })}, stream.ErrOrder, "changed at 6, after everything up to 7"},
		{"fragments out of order", fake{watches: after(func(w *fakeWatch) { w.fragment(false, put("a", 7)); w.fragment(true, put("b", 6)) })}, stream.ErrOrder, "changed at 6, after everything up to 7"},
		{"progress ahead of events", fake{watches: after(func(w *fakeWatch) { w.progress(9); w.say(put("a", 8)) })}, stream.ErrOrder, "changed at 8, after everything up to 9"},
		{"an event of another cluster", fake{watches: after(func(w *fakeWatch) {
			w.answer(&etcdserverpb.WatchResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: 8, Revision: 6}, Events: []*mvccpb.Event{put("a", 6)}})
		})}, errReplaced, "cluster id is 8, was 7"},
		{"an event without a key", fake{watches: after(func(w *fakeWatch) { w.say(&mvccpb.Event{}) })}, stream.ErrInvalid, "want one that begins with"},
		{"an event outside the prefix", fake{watches: after(func(w *fakeWatch) {
			w.say(&mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("q"), ModRevision: 6}})
		})}, stream.ErrInvalid, "want one that begins with"},
		{"compaction below the watch", fake{watches: after(func(w *fakeWatch) { w.answer(&etcdserverpb.WatchResponse{Canceled: true, CompactRevision: 9}) })}, stream.ErrUnresumable, "compacted"},
		{"compaction before the first state", fake{watches: func(w *fakeWatch) { w.answer(&etcdserverpb.WatchResponse{Canceled: true, CompactRevision: 9}) }}, stream.ErrUnresumable, "compacted"},
		{"total silence after the first state", fake{watches: after((*fakeWatch).mute)}, stream.ErrStalled, "asked, and nothing received"},
		{"a cancel with a long reason", fake{watches: after(func(w *fakeWatch) {
			w.answer(&etcdserverpb.WatchResponse{Canceled: true, CancelReason: strings.Repeat("a long reason, ", 70)})
		})}, nil, "the member canceled the watch: a long reason"},
	}
}

// TestScriptedFaults: a member that breaks the protocol is left with an error that says how,
// and nothing that it said beyond that is committed.
func TestScriptedFaults(t *testing.T) {
	for _, row := range scriptedFaults() {
		t.Run(row.name, func(t *testing.T) { synctest.Test(t, row.play) })
	}
}

func (row *fault) play(t *testing.T) {
	f := &row.member
	f.revision = 5
	if f.watches == nil {
		f.watches = (*fakeWatch).idle
	}
	r, err := watched(t, f.serve(t, Config{RequestTimeout: 2 * time.Second, StallAfter: 4 * time.Second}), stream.Resume{}, never)
	if err == nil || row.want != nil && !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.outcome) {
		t.Errorf("error %v, want one that is %v and has %q", err, row.want, row.outcome)
	}
	if got := len(r.Commits()); got > 3 {
		t.Errorf("%d commits: %q", got, shown(r))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ranges > 10 {
		t.Errorf("%d reads of the range", f.ranges)
	}
	t.Logf(" scripted | etcd | %s | refused: %s |", row.name, row.outcome)
}

// follow calls Watch with a sink that allows so many bytes, until enough or the end.
func (f *fake) follow(t *testing.T, most int64, enough func([]streamtest.CommitRecord) bool) (*streamtest.BoundedSink, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sink, ctx := streamtest.NewBoundedSink(ctx, most)
	ended := make(chan error, 1)
	source := f.serve(t, Config{})
	go func() { ended <- source.Watch(ctx, stream.Resume{}, sink) }()
	for changed := sink.Changed(); !enough(sink.Commits()); changed = sink.Changed() {
		select {
		case <-changed:
		case err := <-ended:
			return sink, err
		}
	}
	sink.Stop()
	<-ended
	return sink, nil
}

// TestMessagesAreBounded: a message beyond what the watch may hold is not read, and fragments
// count as they arrive.
func TestMessagesAreBounded(t *testing.T) {
	const most = 4 << 20
	large := func(key string, revision int64, size int) *mvccpb.Event {
		e := put(key, revision)
		e.Kv.Value = bytes.Repeat([]byte("1"), size)
		return e
	}
	var sent atomic.Int64
	for name, say := range map[string]func(w *fakeWatch){
		"one event": func(w *fakeWatch) { w.say(large("a", 6, 3<<20)) },
		"endless fragments": func(w *fakeWatch) {
			for sent.Load() < 16*most && w.Send(&etcdserverpb.WatchResponse{Events: []*mvccpb.Event{large("a", 6, 1<<20)}, Fragment: true}) == nil {
				sent.Add(1 << 20)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sent.Store(0)
			f := &fake{revision: 5, watches: after(say)}
			_, err := f.follow(t, most, never)
			if !errors.Is(err, streamtest.ErrFull) {
				t.Errorf("error %v, want %v", err, streamtest.ErrFull)
			}
			if n := sent.Load(); n > 2*most {
				t.Errorf("%d bytes were read, %d may be held", n, most)
			}
		})
	}
	t.Run("one after the other", func(t *testing.T) {
		f := &fake{revision: 5, watches: after(func(w *fakeWatch) {
			for i := range int64(5) {
				w.advance(6 + i)
				w.say(large("a", 6+i, 100<<10))
			}
		})}
		sink, err := f.follow(t, most, commits(6))
		if held, peak := sink.Held(); err != nil || peak < 100<<10 || held > 100<<10 {
			t.Errorf("error %v, %d bytes were counted, %d are left", err, peak, held)
		}
	})
}

// TestPagesFit: where a page is larger than what the watch may hold, smaller ones are read.
func TestPagesFit(t *testing.T) {
	var kvs []*mvccpb.KeyValue
	for i := range 30 {
		kv := stored(fmt.Sprintf("k%02d", i), 3)
		kv.Value = bytes.Repeat([]byte("1"), 100<<10)
		kvs = append(kvs, kv)
	}
	f := &fake{revision: 5, watches: (*fakeWatch).idle}
	f.onPage = func(r *etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
		at := 0
		for at < len(kvs) && string(kvs[at].Key) < string(r.GetKey()) {
			at++
		}
		n := min(len(kvs)-at, int(min(r.GetLimit(), math.MaxInt32)))
		return &etcdserverpb.RangeResponse{Header: f.header(), Kvs: kvs[at : at+n], More: at+n < len(kvs), Count: int64(len(kvs) - at)}
	}
	sink, err := f.follow(t, 4<<20, commits(1))
	if err != nil || len(sink.State()) != len(kvs) {
		t.Errorf("error %v, %d keys", err, len(sink.State()))
	}
}
