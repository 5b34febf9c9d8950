package informer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// fake is an informer that reports what the test says.
type fake struct {
	handler cache.ResourceEventHandler // nil: none is registered
	synced  chan struct{}
	stopped atomic.Bool
	refuses error
}

// A fake is its own registration.
func (f *fake) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handler = h
	return f, f.refuses
}

func (f *fake) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	f.handler = nil
	return nil
}
func (f *fake) IsStopped() bool                     { return f.stopped.Load() }
func (f *fake) HasSynced() bool                     { panic("it is not asked") }
func (f *fake) HasSyncedChecker() cache.DoneChecker { return f }
func (f *fake) Name() string                        { return "fake" }
func (f *fake) Done() <-chan struct{}               { return f.synced }

// sink records what it is told.
type sink struct {
	stream.PlainSink
	values          map[string]string
	resets, commits int
	at              stream.Resume
	statuses        []stream.State
	charged         int64
	refuses         error         // of Commit
	block           chan struct{} // nil: Commit does not wait
}

func newSink() *sink { return &sink{values: map[string]string{}} }

func (s *sink) Reset(epoch string) error {
	s.resets++
	s.values, s.at.Epoch = map[string]string{}, epoch
	return nil
}
func (s *sink) Upsert(r stream.Resource) error {
	s.values[r.Key] = string(r.Value)
	return nil
}
func (s *sink) Delete(key string, _ uint64) error {
	delete(s.values, key)
	return nil
}
func (s *sink) Status(state stream.State, _ string) error {
	s.statuses = append(s.statuses, state)
	return nil
}
func (s *sink) Commit(revision uint64) error {
	if s.block != nil {
		<-s.block
	}
	if s.refuses == nil {
		s.commits++
		s.at.Revision = revision
	}
	return s.refuses
}
func (s *sink) Charge(bytes int64) { s.charged += bytes }

func (s *sink) keys() string { return strings.Join(slices.Sorted(maps.Keys(s.values)), " ") }

// call is one Watch call.
type call struct {
	cancel context.CancelFunc
	ended  chan error
}

func start(source *Source, sink *sink) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{cancel: cancel, ended: make(chan error, 1)}
	sink.charged = 0
	at := sink.at
	go func() { c.ended <- source.Watch(ctx, at, sink) }()
	synctest.Wait()
	return c
}

func (c *call) stop() {
	c.cancel()
	<-c.ended
}

// follows runs a test with an informer that has reported a and b, and a sink that has them.
func follows(t *testing.T, test func(f *fake, s *Source, sink *sink, c *call)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{synced: make(chan struct{})}
		s, sink := New(f, Options{Value: textOf}), newSink()
		c := start(s, sink)
		f.handler.OnAdd(object("n/a", `1`), true)
		f.handler.OnAdd(object("n/b", `1`), true)
		close(f.synced)
		synctest.Wait()
		if sink.keys() != "n/a n/b" || sink.resets != 1 || sink.commits != 1 {
			t.Fatalf("%s after %d resets and %d commits", sink.keys(), sink.resets, sink.commits)
		}
		test(f, s, sink, c)
		c.stop()
		if f.handler != nil {
			t.Error("the handler is still registered")
		}
	})
}

// TestNothingBeforeTheListIsComplete: half of a list is not a state of the informer.
func TestNothingBeforeTheListIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{synced: make(chan struct{})}
		sink := newSink()
		c := start(New(f, Options{Value: textOf}), sink)
		f.handler.OnAdd(object("n/a", `1`), true)
		f.handler.OnUpdate(nil, object("n/a", `2`))
		synctest.Wait()
		if sink.resets+sink.commits != 0 {
			t.Errorf("%d resets and %d commits before the list is complete", sink.resets, sink.commits)
		}
		close(f.synced)
		synctest.Wait()
		if sink.values["n/a"] != "2" || sink.commits != 1 {
			t.Errorf("%v after %d commits", sink.values, sink.commits)
		}
		c.stop()
	})
}

// TestMissedDelete: the informer knows only the key, and a state of the past.
func TestMissedDelete(t *testing.T) {
	follows(t, func(f *fake, _ *Source, sink *sink, _ *call) {
		f.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "n/a", Obj: object("n/a", `0`)})
		f.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "n/never"})
		synctest.Wait()
		if sink.keys() != "n/b" || sink.commits != 2 {
			t.Errorf("%s after %d commits", sink.keys(), sink.commits)
		}
		f.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "n/a"})
		synctest.Wait()
		if sink.commits != 2 {
			t.Error("a delete of what is gone is committed")
		}
	})
}

// TestListedAgain: what is as before is not sent, whatever its version is.
func TestListedAgain(t *testing.T) {
	follows(t, func(f *fake, _ *Source, sink *sink, _ *call) {
		for _, key := range []string{"n/b", "n/a"} {
			o := object(key, `1`)
			o.ResourceVersion = "7"
			f.handler.OnUpdate(o, o)
		}
		synctest.Wait()
		if sink.commits != 1 {
			t.Errorf("%d commits, want none for it", sink.commits-1)
		}
	})
}

// TestHandlerNeverWaits: while the sink is busy, each object that changes is noted once.
func TestHandlerNeverWaits(t *testing.T) {
	follows(t, func(f *fake, _ *Source, sink *sink, _ *call) {
		sink.block = make(chan struct{})
		f.handler.OnAdd(object("n/c", `0`), false)
		synctest.Wait() // it is in Commit now
		p := f.handler.(*pending)
		for n := range 10_000 {
			f.handler.OnUpdate(nil, object(fmt.Sprintf("n/x%d", n%10), fmt.Sprint(n)))
		}
		f.handler.OnDelete(object("n/x0", ""))
		if n := len(p.objects); n != 10 {
			t.Errorf("%d entries, want one for each object", n)
		}
		close(sink.block)
		synctest.Wait()
		if want := "n/a n/b n/c n/x1 n/x2 n/x3 n/x4 n/x5 n/x6 n/x7 n/x8 n/x9"; sink.keys() != want || sink.values["n/x9"] != "9999" || sink.commits != 3 {
			t.Errorf("%v after %d commits", sink.values, sink.commits)
		}
	})
}

// TestContinues: another Watch call sends what has changed in between, unless the sink is elsewhere.
func TestContinues(t *testing.T) {
	follows(t, func(f *fake, s *Source, sink *sink, c *call) {
		c.stop()
		again := func() *call {
			c := start(s, sink)
			f.handler.OnAdd(object("n/b", `2`), true)
			f.handler.OnAdd(object("n/c", `1`), true)
			synctest.Wait()
			return c
		}
		second := again()
		second.stop()
		if sink.keys() != "n/b n/c" || sink.values["n/b"] != "2" || sink.resets != 1 || len(sink.statuses) != 1 || sink.statuses[0] != stream.InSync {
			t.Errorf("%v after %d resets, statuses %v", sink.values, sink.resets, sink.statuses)
		}
		sink.at.Revision--
		again().stop()
		if sink.keys() != "n/b n/c" || sink.resets != 2 {
			t.Errorf("from an earlier place: %v after %d resets, want another", sink.values, sink.resets)
		}
		c.ended <- nil // for follows
	})
}

// TestContinuesWithAnotherProcess: it goes on in the order of the process before.
func TestContinuesWithAnotherProcess(t *testing.T) {
	follows(t, func(f *fake, _ *Source, sink *sink, _ *call) {
		g := &fake{synced: make(chan struct{})}
		s := New(g, Options{Value: textOf})
		s.Continue(sink.at, func(yield func(stream.Resource) bool) {
			for key, value := range sink.values {
				if !yield(stream.Resource{Key: key, Value: []byte(value)}) {
					return
				}
			}
		})
		resets, before := sink.resets, sink.at
		c := start(s, sink)
		g.handler.OnAdd(object("n/a", `1`), true)
		g.handler.OnAdd(object("n/c", `1`), true)
		close(g.synced)
		synctest.Wait()
		if sink.keys() != "n/a n/c" || sink.resets != resets || sink.at.Epoch != before.Epoch || sink.at.Revision <= before.Revision {
			t.Errorf("%s at %+v after %d resets", sink.keys(), sink.at, sink.resets-resets)
		}
		c.stop()
	})
}

// TestRefusedCommit: what the sink has is unknown then, so that a snapshot follows.
func TestRefusedCommit(t *testing.T) {
	follows(t, func(f *fake, s *Source, sink *sink, c *call) {
		sink.refuses = errors.New("no")
		f.handler.OnAdd(object("n/c", `1`), false)
		if err := <-c.ended; err != sink.refuses {
			t.Errorf("error %v", err)
		}
		sink.refuses = nil
		next := start(s, sink)
		f.handler.OnAdd(object("n/c", `1`), true)
		synctest.Wait()
		if next.stop(); sink.keys() != "n/c" || sink.resets != 2 {
			t.Errorf("%s after %d resets", sink.keys(), sink.resets)
		}
		c.ended <- nil // for follows
	})
}

// TestStoppedInformer, which reports nothing, not even that.
func TestStoppedInformer(t *testing.T) {
	follows(t, func(f *fake, s *Source, _ *sink, c *call) {
		f.stopped.Store(true)
		began := time.Now()
		if err := <-c.ended; !errors.Is(err, errStopped) || time.Since(began) > stopCheck {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		f.refuses = errors.New("stopped")
		if err := s.Watch(t.Context(), stream.Resume{}, newSink()); !errors.Is(err, f.refuses) {
			t.Errorf("error %v", err)
		}
		c.ended <- nil // for follows
		f.handler = nil
	})
}

// TestLeftOut: an object without a value is as if it did not exist, and comes back with one.
func TestLeftOut(t *testing.T) {
	follows(t, func(f *fake, s *Source, sink *sink, _ *call) {
		s.options.Value = func(o any) ([]byte, error) {
			if text, err := textOf(o); string(text) != "hidden" {
				return text, err
			}
			return nil, nil
		}
		for i, c := range []struct{ value, keys string }{{"hidden", "n/b"}, {"hidden", "n/b"}, {"2", "n/a n/b"}} {
			f.handler.OnUpdate(nil, object("n/a", c.value))
			synctest.Wait()
			if sink.keys() != c.keys {
				t.Errorf("%d: %s, want %s", i, sink.keys(), c.keys)
			}
		}
		if sink.commits != 3 {
			t.Errorf("%d commits, want three", sink.commits)
		}
	})
}

func TestNoInformer(t *testing.T) {
	if err := New(nil, Options{}).Watch(t.Context(), stream.Resume{}, newSink()); err != errNone {
		t.Errorf("error %v", err)
	}
}

// TestMemoryIsCharged, and given back.
func TestMemoryIsCharged(t *testing.T) {
	follows(t, func(f *fake, s *Source, sink *sink, c *call) {
		two := sink.charged
		f.handler.OnDelete(object("n/a", ``))
		synctest.Wait()
		if one := sink.charged; one <= 0 || two != 2*one {
			t.Errorf("%d bytes for two objects, %d for one", two, one)
		}
		one := sink.charged
		c.stop()
		again := start(s, sink)
		f.handler.OnAdd(object("n/b", `1`), true)
		synctest.Wait()
		if sink.charged != one {
			t.Errorf("%d bytes in another call, want %d", sink.charged, one)
		}
		again.stop()
		c.ended <- nil // for follows
	})
}

// TestInvalidObjects end the call with an error that names them.
func TestInvalidObjects(t *testing.T) {
	for want, object := range map[string]any{
		`the object "n/a": its value is not JSON text`: object("n/a", `{`),
		"an object without a key":                      "text",
	} {
		follows(t, func(f *fake, _ *Source, _ *sink, c *call) {
			f.handler.OnAdd(object, false)
			if err := <-c.ended; !errors.Is(err, stream.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
			c.ended <- nil // for follows
		})
	}
}

// TestValues: an object as it is, without managedFields, and with its type.
func TestValues(t *testing.T) {
	o := object("n/a", `1`)
	o.TypeMeta = metav1.TypeMeta{}
	o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	value, err := New(nil, Options{Kind: kind}).value("n/a", o)
	if want := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","annotations":{"text":"1"}}}`; string(value) != want || err != nil {
		t.Errorf("%s, %v; want %s", value, err, want)
	}
	if len(o.ManagedFields) != 1 || o.Kind != "" {
		t.Errorf("the object of the informer has become %+v", o)
	}
	if value, err := New(nil, Options{Value: func(any) ([]byte, error) { return nil, nil }}).value("n/a", o); value != nil || err != nil {
		t.Errorf("an object that is left out: %s, %v", value, err)
	}
	if value, err := New(nil, Options{Value: func(any) ([]byte, error) { return []byte("{\n \"n\": 1 }"), nil }}).value("n/a", o); !bytes.Equal(value, []byte(`{"n":1}`)) || err != nil {
		t.Errorf("on several lines: %s, %v", value, err)
	}
	if _, err := New(nil, Options{}).value("n/a", 1); err == nil || !strings.Contains(err.Error(), "want Options.Value") {
		t.Errorf("of another type: error %v", err)
	}
}

// TestInformerOfClientGo: an informer that lists again, after it has missed a delete, a change and a new object.
func TestInformerOfClientGo(t *testing.T) {
	u := newUpstream(t)
	u.Add(object("n/a", `1`))
	u.Add(object("n/b", `1`))
	source, sink := New(u.informer, Options{Value: textOf}), newLocked()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Watch(ctx, stream.Resume{}, sink) }()
	sink.await(t, map[string]string{"n/a": "1", "n/b": "1"})
	u.DeleteDropWatch(object("n/a", ``))
	u.ModifyDropWatch(object("n/b", `2`))
	u.AddDropWatch(object("n/c", `1`))
	u.ResetWatch()
	sink.await(t, map[string]string{"n/b": "2", "n/c": "1"})
	u.stop()
	if err := <-ended; !errors.Is(err, errStopped) {
		t.Errorf("error %v", err)
	}
	cancel()
	if resets := sink.of.resets; resets != 1 {
		t.Errorf("%d resets, want one", resets)
	}
}
