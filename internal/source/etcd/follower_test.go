package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// watched calls Watch until the sink shows the expected state, or Watch returns.
func watched(t *testing.T, s *Source, resume stream.Resume, enough func([]streamtest.CommitRecord) bool) (*streamtest.SinkRecorder, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := streamtest.NewSinkRecorder(resume, nil)
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(ctx, resume, r) }()
	defer func() {
		if err := r.Err(); err != nil {
			t.Error(err)
		}
	}()
	for changed := r.Changed(); !enough(r.Commits()); changed = r.Changed() {
		select {
		case <-changed:
		case err := <-ended:
			return r, err
		}
	}
	cancel()
	<-ended
	return r, nil
}

func commits(n int) func([]streamtest.CommitRecord) bool {
	return func(c []streamtest.CommitRecord) bool { return len(c) >= n }
}

func never([]streamtest.CommitRecord) bool { return false }

// shown are the visible states: revision and keys of each commit.
func shown(r *streamtest.SinkRecorder) (out []string) {
	for _, c := range r.Commits() {
		var keys []string
		for key, v := range c.State {
			keys = append(keys, fmt.Sprintf("%s@%d", key, v.Revision))
		}
		slices.Sort(keys)
		out = append(out, fmt.Sprintf("%d: %s", c.Revision, strings.Join(keys, " ")))
	}
	return out
}

func wantShown(t *testing.T, r *streamtest.SinkRecorder, want ...string) {
	t.Helper()
	if got := shown(r); !slices.Equal(got, want) {
		t.Errorf("commits\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTransactions: changes of one revision are one commit, whatever the
// messages; and only an answer to a request for progress is progress.
func TestTransactions(t *testing.T) {
	f := &fake{revision: 5, kvs: []*mvccpb.KeyValue{stored("a", 3)}, watches: func(w *fakeWatch) {
		w.progress(5)
		w.advance(20)
		w.say(put("a", 6), put("b", 6))
		w.say(put("a", 7), put("b", 8), del("a", 8), put("c", 9))
		w.fragment(false, put("d", 10))
		w.fragment(false, put("e", 10), put("f", 11))
		w.fragment(true, del("f", 12))
		w.progress(20)
		w.idle()
	}}
	r, err := watched(t, f.serve(t, Config{StallAfter: MinStallAfter}), stream.Resume{}, commits(9))
	if err != nil {
		t.Fatal(err)
	}
	wantShown(t, r,
		"5: a@3", "6: a@6 b@6", "7: a@7 b@6", "8: b@8", "9: b@8 c@9",
		"10: b@8 c@9 d@10 e@10", "11: b@8 c@9 d@10 e@10 f@11", "12: b@8 c@9 d@10 e@10", "20: b@8 c@9 d@10 e@10")
}

// TestListWaitsForTheWatch: pages have different revisions, and a watch later
// reports the changes in between. Each committed state existed.
func TestListWaitsForTheWatch(t *testing.T) {
	told := make(chan struct{})
	f := &fake{revision: 5, kvs: []*mvccpb.KeyValue{stored("a", 3), stored("b", 4)}}
	f.onRange = func(n int, f *fake) {
		f.revision = 9 // what is listed is older
		close(told)
	}
	f.watches = func(w *fakeWatch) {
		<-told
		w.progress(6)
		w.say(put("a", 7), del("b", 7))
		w.progress(8)
		w.advance(10)
		w.say(put("c", 10))
		w.idle()
	}
	r, err := watched(t, f.serve(t, Config{}), stream.Resume{}, commits(1))
	if err != nil {
		t.Fatal(err)
	}
	wantShown(t, r, "10: a@7 c@10")
}

// TestProgressAheadOfEvents: an old server reports that the watch is at 9, and only
// then that a listed key was deleted at 9. No commit contains it.
func TestProgressAheadOfEvents(t *testing.T) {
	for _, version := range []string{"3.4.23", "3.4.30", "3.5.12"} {
		t.Run(version, func(t *testing.T) {
			f := &fake{version: version, revision: 8, kvs: []*mvccpb.KeyValue{stored("gone", 5), stored("kept", 6)}}
			f.onRange = func(n int, f *fake) {
				if n == 2 {
					f.revision, f.kvs = 10, []*mvccpb.KeyValue{stored("kept", 6), stored("new", 10)}
				}
			}
			f.watches = func(w *fakeWatch) {
				for range 5 {
					w.progress(10)
				}
				w.say(del("gone", 9))
				w.progress(10)
				w.say(put("new", 10)) // the list had it
				w.advance(11)
				w.say(put("kept", 11))
				w.idle()
			}
			r, err := watched(t, f.serve(t, Config{}), stream.Resume{}, commits(2))
			if err != nil {
				t.Fatal(err)
			}
			wantShown(t, r, "10: kept@6 new@10", "11: kept@11 new@10")
		})
	}
}

// TestOldServerResumes: an old server reports that the watch is at 9 before the
// watch has sent the changes since 5. Nothing is committed until it has.
func TestOldServerResumes(t *testing.T) {
	for name, c := range map[string]struct {
		kvs  []*mvccpb.KeyValue // at 9
		says []*mvccpb.Event
		want string
	}{
		"nothing changed":   {[]*mvccpb.KeyValue{stored("a", 3)}, nil, "9: "},
		"a key was changed": {[]*mvccpb.KeyValue{stored("a", 6)}, []*mvccpb.Event{put("a", 6)}, "9: a@6"},
		"a key was deleted": {nil, []*mvccpb.Event{del("a", 7)}, "9: "},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{version: "3.4.23", revision: 5, kvs: []*mvccpb.KeyValue{stored("a", 3)}}
			f.onRange = func(n int, f *fake) {
				if n == 3 { // the first two were the snapshot
					f.revision, f.kvs = 9, c.kvs
				}
			}
			f.watches = func(w *fakeWatch) {
				for range 3 {
					w.progress(9)
				}
				if w.nth == 2 && c.says != nil {
					w.say(c.says...)
				}
				w.idle()
			}
			s := f.serve(t, Config{})
			first, err := watched(t, s, stream.Resume{}, commits(1))
			if err != nil {
				t.Fatal(err)
			}
			wantShown(t, first, "5: a@3")
			second, err := watched(t, s, first.Resume(), commits(1))
			if err != nil {
				t.Fatal(err)
			}
			wantShown(t, second, c.want)
		})
	}
}

// TestCompactedWhileItBegins: the watch is opened again at once.
func TestCompactedWhileItBegins(t *testing.T) {
	f := &fake{revision: 5, kvs: []*mvccpb.KeyValue{stored("a", 3)}, watches: func(w *fakeWatch) {
		if w.nth < attempts {
			w.Send(&etcdserverpb.WatchResponse{Canceled: true, CompactRevision: 4})
			w.mute()
		}
		w.idle()
	}}
	r, err := watched(t, f.serve(t, Config{}), stream.Resume{}, commits(1))
	if err != nil {
		t.Fatal(err)
	}
	wantShown(t, r, "5: a@3")
}

// TestCompactedLater: it ends the connection, and nothing is resumed.
func TestCompactedLater(t *testing.T) {
	f := &fake{revision: 5, watches: func(w *fakeWatch) {
		w.progress(5)
		w.Send(&etcdserverpb.WatchResponse{Canceled: true, CompactRevision: 9})
		w.mute()
	}}
	_, err := watched(t, f.serve(t, Config{}), stream.Resume{}, never)
	if !errors.Is(err, stream.ErrUnresumable) || !strings.Contains(err.Error(), "compacted") {
		t.Errorf("error %v, want ErrUnresumable for a compaction", err)
	}
}

// TestCanceled: the error gives the reason.
func TestCanceled(t *testing.T) {
	f := &fake{revision: 5, watches: func(w *fakeWatch) {
		w.Send(&etcdserverpb.WatchResponse{Canceled: true, CancelReason: "the moon"})
		w.mute()
	}}
	_, err := watched(t, f.serve(t, Config{}), stream.Resume{}, never)
	if err == nil || !strings.Contains(err.Error(), "canceled the watch: the moon") {
		t.Errorf("error %v, want the reason", err)
	}
}

// TestReplacedWhileConnected: the revision of the cluster falls, or its id
// changes, under a watch that does not report it.
func TestReplacedWhileConnected(t *testing.T) {
	for name, replace := range map[string]func(*fake){
		"revision": func(f *fake) { f.revision = 2 },
		"id":       func(f *fake) { f.cluster = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{revision: 5, watches: func(w *fakeWatch) {
				w.progress(5)
				w.mu.Lock()
				replace(w.fake)
				w.mu.Unlock()
				for w.progress(5) {
				}
			}}
			s := f.serve(t, Config{StallAfter: MinStallAfter})
			first, err := watched(t, s, stream.Resume{}, never)
			if !errors.Is(err, errReplaced) {
				t.Errorf("error %v, want %v", err, errReplaced)
			}
			f.watches = (*fakeWatch).idle
			second, err := watched(t, s, first.Resume(), commits(1))
			if err != nil {
				t.Fatal(err)
			}
			if a, b := first.Resume().Epoch, second.Resume().Epoch; a == b {
				t.Errorf("the epoch is %q before and after", a)
			}
		})
	}
}

// TestContradictionGivesAnEpoch: the sink has served something newer than the
// snapshot.
func TestContradictionGivesAnEpoch(t *testing.T) {
	f := &fake{revision: 5, kvs: []*mvccpb.KeyValue{stored("a", 3)}, watches: (*fakeWatch).idle}
	s := f.serve(t, Config{})
	first, err := watched(t, s, stream.Resume{}, commits(1))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Watch(t.Context(), stream.Resume{}, behind{streamtest.NewSinkRecorder(stream.Resume{}, nil)})
	if !errors.Is(err, stream.ErrBehind) {
		t.Fatalf("error %v, want that of the sink", err)
	}
	second, err := watched(t, s, stream.Resume{}, commits(1))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := first.Resume().Epoch, second.Resume().Epoch; a == b {
		t.Errorf("the epoch is %q before and after", a)
	}
}

// behind is a sink that has served something newer.
type behind struct{ *streamtest.SinkRecorder }

func (behind) Commit(uint64) error { return fmt.Errorf("%w: in a test", stream.ErrBehind) }

// TestRubbish: invalid messages are rejected as such, and do no harm.
func TestRubbish(t *testing.T) {
	for name, f := range map[string]*fake{
		"event of another key":     {watches: func(w *fakeWatch) { w.say(&mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("q"), ModRevision: 9}}) }},
		"event without a key":      {watches: func(w *fakeWatch) { w.say(&mvccpb.Event{}) }},
		"event without a revision": {watches: func(w *fakeWatch) { w.say(put("a", 0)) }},
		"key without a revision":   {watches: (*fakeWatch).idle, kvs: []*mvccpb.KeyValue{stored("a", 0)}},
		"key of another range":     {watches: (*fakeWatch).idle, kvs: []*mvccpb.KeyValue{{Key: []byte("x"), ModRevision: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			f.revision = 5
			if _, err := watched(t, f.serve(t, Config{}), stream.Resume{}, never); !errors.Is(err, stream.ErrInvalid) {
				t.Errorf("error %v, want ErrInvalid", err)
			}
		})
	}
	t.Run("no answers", func(t *testing.T) {
		f := &fake{revision: 5, watches: (*fakeWatch).idle, kvs: []*mvccpb.KeyValue{stored("a", 3)}, garbled: true}
		s := f.serve(t, Config{})
		first, err := watched(t, s, stream.Resume{}, commits(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watched(t, s, first.Resume(), never); !errors.Is(err, stream.ErrInvalid) {
			t.Errorf("error %v, want ErrInvalid", err)
		}
	})
}

// TestOldVersionIsRefused: it is rejected before its silence is noticed.
func TestOldVersionIsRefused(t *testing.T) {
	for _, version := range []string{"3.3.27", "2.3.8", "etcd"} {
		f := &fake{version: version, revision: 5, watches: (*fakeWatch).idle}
		_, err := watched(t, f.serve(t, Config{}), stream.Resume{}, never)
		if want := fmt.Sprintf("it is etcd %q: want 3.4 or newer", version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestStalled: a member that stops answering is noticed within the configured
// time plus a quarter, and one that answers is kept.
func TestStalled(t *testing.T) {
	const working = 10 * time.Minute
	for name, test := range map[string]struct {
		watch func(*fakeWatch)
		text  string
	}{
		"at once":           {(*fakeWatch).mute, "nothing received for 8s"},
		"after minutes":     {func(w *fakeWatch) { answerFor(w, working); w.mute() }, "nothing received for 8s"},
		"reads are the one": {func(w *fakeWatch) { answerFor(w, working); w.hang(); w.idle() }, "no answer to a read within 8s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				f := &fake{revision: 5, watches: test.watch, hanging: hang}
				s := f.serve(t, Config{})
				began := time.Now()
				r := streamtest.NewSinkRecorder(stream.Resume{}, nil)
				err := s.Watch(t.Context(), stream.Resume{}, r)
				if !errors.Is(err, stream.ErrStalled) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("error %v, want ErrStalled: %s", err, test.text)
				}
				took := time.Since(began)
				if took > working {
					took -= working
				}
				if limit := DefaultStallAfter*5/4 + time.Second; took > limit {
					t.Errorf("noticed after %v, want at most %v", took, limit)
				}
				close(hang)
			})
		})
	}
}

// answerFor answers requests for progress for a while.
func answerFor(w *fakeWatch, d time.Duration) {
	for deadline := time.Now().Add(d); time.Now().Before(deadline) && w.progress(5); {
	}
}

// TestOfAnotherProcess: the source resumes at a place of another process if the cluster had the same resources there,
// and the order keeps the name that the other process has given to it.
func TestOfAnotherProcess(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fake)
		want   string // of "resumed", "another name" and "snapshot"
	}{
		"the same":        {func(f *fake) { f.revision = 9 }, "resumed"},
		"a value":         {func(f *fake) { f.kvs[0].Value = []byte(`"other"`) }, "another name"},
		"a revision":      {func(f *fake) { f.kvs[0].ModRevision = 2 }, "another name"},
		"one is missing":  {func(f *fake) { f.kvs = f.kvs[:1] }, "another name"},
		"one too many":    {func(f *fake) { f.kvs = append(f.kvs, stored("z", 2)) }, "another name"},
		"it went back":    {func(f *fake) { f.revision, f.kvs = 4, f.kvs[:1] }, "another name"},
		"another cluster": {func(f *fake) { f.cluster = 8 }, "another name"},
		"compacted":       {func(f *fake) { f.compacted = true }, "snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := func() *fake {
				return &fake{revision: 5, kvs: []*mvccpb.KeyValue{stored("a", 3), stored("b", 5)}, watches: (*fakeWatch).idle}
			}
			f := etcd()
			before := f.serve(t, Config{})
			before.epochs.replace(7)
			first, err := watched(t, before, stream.Resume{}, commits(1))
			if err != nil {
				t.Fatal(err)
			}
			var has []stream.Resource
			for _, kv := range f.kvs {
				has = append(has, before.resource(kv))
			}
			place := first.Resume()
			f = etcd() // the watches of the first one may still end
			c.change(f)
			after := f.serve(t, Config{})
			after.Recognise(place, slices.Values(has), nil)
			second, err := watched(t, after, place, commits(1))
			if err != nil {
				t.Fatal(err)
			}
			got := "another name"
			switch {
			case second.Resets() == 0:
				got = "resumed"
			case second.Resume().Epoch == place.Epoch:
				got = "snapshot"
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
