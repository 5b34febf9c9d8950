//go:build servers

package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"k8s.io/client-go/rest"
)

// The tests of this file use the real API server.

// TestObjectsByteForByte: subscribers get the server's JSON byte for byte,
// except for managedFields, whether it is listed, streamed or live.
func TestObjectsByteForByte(t *testing.T) {
	k := sharedKind(t)
	const spec = `{"z":1,"a":9007199254740993,"half":1.50,"text":"<ü>\u2028\\"}`
	k.mustPut("one", "listed", spec)
	streamed, paged := mustNew(t, k.config()), mustNew(t, k.config())
	paged.paged = true
	s, p := record(t, streamed, nil), record(t, paged, nil)
	s.untilKeys("one/listed")
	p.untilKeys("one/listed")
	k.mustPut("one", "live", spec)
	s.untilKeys("one/listed", "one/live")
	p.untilKeys("one/listed", "one/live")
	s.stop()
	p.stop()
	for _, name := range []string{"listed", "live"} {
		answer, _ := k.do(http.MethodGet, k.collection("one")+"/"+name, "")
		want := withoutManagedFields(t, answer)
		for how, r := range map[string]*recording{"streamed": s, "in pages": p} {
			got := r.values.of["one/"+name]
			if strings.Contains(got, "managedFields") || !jsonEqual(t, got, want) {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, how, got, want)
			}
			if !strings.Contains(answer, got[strings.Index(got, `"spec"`):]) {
				t.Errorf("%s, %s: the spec is not as the server writes it: %s", name, how, got)
			}
		}
		if s.values.of["one/"+name] != p.values.of["one/"+name] {
			t.Errorf("%s differs:\n%s\n%s", name, s.values.of["one/"+name], p.values.of["one/"+name])
		}
	}
}

func withoutManagedFields(t *testing.T, object string) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(object), &v); err != nil {
		t.Fatal(err)
	}
	delete(v["metadata"].(map[string]any), "managedFields")
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func jsonEqual(t *testing.T, a, b string) bool {
	t.Helper()
	var out [2]bytes.Buffer
	for i, text := range []string{a, b} {
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := json.NewEncoder(&out[i]).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	return out[0].String() == out[1].String()
}

func TestNamespaceAndSelectors(t *testing.T) {
	k := sharedKind(t)
	k.mustPut("one", "a", `1`)
	k.mustPut("one", "b", `1`)
	k.mustPut("two", "a", `1`)
	for _, c := range []struct {
		name   string
		narrow func(*Config)
		want   []string
	}{
		{"all", func(*Config) {}, []string{"one/a", "one/b", "two/a"}},
		{"a namespace", func(c *Config) { c.Namespace = "one" }, []string{"one/a", "one/b"}},
		{"an empty namespace", func(c *Config) { c.Namespace = "none" }, nil},
		{"labels", func(c *Config) { c.LabelSelector = "name in (a,x)" }, []string{"one/a", "two/a"}},
		{"fields", func(c *Config) { c.FieldSelector = "metadata.name=b" }, []string{"one/b"}},
		{"everything", func(c *Config) { c.Namespace, c.LabelSelector, c.FieldSelector = "two", "name", "metadata.name!=b" }, []string{"two/a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := k.in(t).config()
			c.narrow(&config)
			for _, paged := range []bool{false, true} {
				s := mustNew(t, config)
				s.paged = paged
				record(t, s, nil).untilKeys(c.want...)
			}
		})
	}
}

// TestObjectNoLongerSelected is a deletion.
func TestObjectNoLongerSelected(t *testing.T) {
	k := sharedKind(t)
	k.mustPut("one", "a", `1`)
	config := k.config()
	config.LabelSelector = "name=a"
	r := record(t, mustNew(t, config), nil)
	r.untilKeys("one/a")
	k.do(http.MethodPatch, k.collection("one")+"/a", `{"metadata":{"labels":{"name":"b"}}}`)
	r.untilKeys()
	k.do(http.MethodPatch, k.collection("one")+"/a", `{"metadata":{"labels":{"name":"a"}}}`)
	r.untilKeys("one/a")
}

func TestObjectsInNoNamespace(t *testing.T) {
	t.Parallel()
	k := sharedCluster(t).kind(false)
	k.mustPut("", "a", `1`)
	r := record(t, mustNew(t, k.config()), nil)
	r.untilKeys("a")
	config := k.config()
	config.Namespace = "one"
	err := record(t, mustNew(t, config), nil).failure()
	if err == nil || !strings.Contains(err.Error(), k.plural+" are in no namespace; want no namespace for them") {
		t.Errorf("in a namespace: error %v", err)
	}
}

// TestFiveThousandObjects in one stream, and in ten pages.
func TestFiveThousandObjects(t *testing.T) {
	t.Parallel()
	const n = 5000
	k := sharedKind(t)
	k.fill(n)
	var epochs []string
	for _, paged := range []bool{false, true} {
		s := mustNew(t, k.config())
		s.paged = paged
		began := time.Now()
		r := record(t, s, nil)
		r.until("snapshot", func() bool { return len(r.Commits()) > 0 })
		t.Logf("paged %v: %v", paged, time.Since(began).Round(time.Millisecond))
		if got := len(r.State()); got != n {
			t.Errorf("paged %v: %d objects, want %d", paged, got, n)
		}
		epochs = append(epochs, r.Resume().Epoch)
		r.stop()
	}
	if epochs[0] != epochs[1] {
		t.Errorf("epochs are %v, want one", epochs)
	}
}

// TestServerWithoutStreamingList uses a real one that has the feature switched off.
func TestServerWithoutStreamingList(t *testing.T) {
	t.Parallel()
	k := ownCluster(t, "-features", "WatchList=false").kind(true)
	k.mustPut("one", "a", `1`)
	s := mustNew(t, k.config())
	r := record(t, s, nil)
	r.untilKeys("one/a")
	k.mustPut("one", "b", `1`)
	r.untilKeys("one/a", "one/b")
	if r.stop(); !s.paged {
		t.Error("it is not remembered")
	}
}

// TestExpired starts at a position that the server has compacted.
func TestExpired(t *testing.T) {
	k := sharedKind(t)
	k.mustPut("one", "a", `1`)
	s := mustNew(t, k.config())
	first := record(t, s, nil)
	first.untilKeys("one/a")
	first.stop()
	r := recordAt(t, s, stream.Resume{Epoch: first.Resume().Epoch, Revision: 1}, streamtest.State{"one/gone": {Revision: 1, Value: "1"}})
	r.untilKeys("one/a")
	if r.Resets() != 1 || r.Resume().Epoch != first.Resume().Epoch {
		t.Errorf("%d resets, epoch %s; want one, and %s", r.Resets(), r.Resume().Epoch, first.Resume().Epoch)
	}
}

// TestResourceIsDeletedAndRecreated as a subscriber sees it: deleted objects are
// deleted, the watch reports the missing resource, and resumes.
func TestResourceIsDeletedAndRecreated(t *testing.T) {
	t.Parallel()
	k := sharedKind(t)
	k.mustPut("one", "a", `1`)
	registry := watch.NewRegistry()
	defer registry.Close()
	watch, err := registry.Add(watch.Config{
		Name: "w", SourceName: "cluster", Source: mustNew(t, k.config()),
		Backoff: watch.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}, StaleAfter: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	count := func(n int) func() bool {
		return func() bool { return watch.Status().State == stream.InSync && watch.Snapshot().Count() == n }
	}
	k.await("one object", count(1))
	k.remove()
	missing := fmt.Sprintf("the server has no resource %q", k.plural)
	k.await("status", func() bool {
		s := watch.Status()
		return s.State == stream.Stale && (strings.Contains(s.Full(), missing) || strings.Contains(s.Full(), `the server has no group "example.com"`))
	})
	if n := watch.Snapshot().Count(); n != 0 {
		t.Errorf("%d objects of a resource that was deleted, want none", n)
	}
	k.declare()
	k.mustPut("one", "b", `1`)
	k.mustPut("one", "c", `1`)
	k.await("two objects", count(2))
}

// TestBackup resets etcd to an earlier state: the same cluster, with a
// revision that is lower, and later with one that is higher again.
func TestBackup(t *testing.T) {
	t.Parallel()
	k := ownCluster(t).kind(true)
	k.mustPut("one", "a", `1`)
	backup := k.backup()
	s := mustNew(t, k.config())
	k.mustPut("one", "b", `1`)
	first := record(t, s, nil)
	first.untilKeys("one/a", "one/b")
	first.stop()
	k.restore(backup)
	lower := record(t, s, first)
	lower.untilKeys("one/a")
	lower.stop()
	if was, is := first.Resume(), lower.Resume(); is.Epoch == was.Epoch || is.Revision >= was.Revision {
		t.Errorf("at %+v after a restore, which was at %+v: want another epoch and a lower revision", is, was)
	}
	fresh := record(t, mustNew(t, k.config()), nil)
	fresh.untilKeys("one/a")
	if fresh.Resume().Epoch != first.Resume().Epoch {
		t.Error("a source that missed the restore names the order differently than before")
	}
}

func TestCloseEndsWatch(t *testing.T) {
	k := sharedKind(t)
	s := mustNew(t, k.config())
	r := record(t, s, nil)
	r.untilKeys()
	s.Close()
	if err := r.failure(); !errors.Is(err, errClosed) {
		t.Errorf("error %v, want %v", err, errClosed)
	}
	if err := record(t, s, nil).failure(); !errors.Is(err, errClosed) {
		t.Errorf("a closed source gives %v, want %v", err, errClosed)
	}
}

// TestPod uses the service account of a pod: an address, an authority and a
// token in a file.
func TestPod(t *testing.T) {
	k := sharedKind(t)
	token := writeFile(t, "token", "admin")
	c := k.config()
	c.Kubeconfig = ""
	c.inCluster = func() (*rest.Config, error) {
		return &rest.Config{
			Host: "https://" + k.server.Addr(), BearerTokenFile: token,
			TLSClientConfig: rest.TLSClientConfig{CAFile: k.certificate()},
		}, nil
	}
	k.mustPut("one", "a", `1`)
	record(t, mustNew(t, c), nil).untilKeys("one/a")
}

// untilKeys waits until exactly these keys exist, as of a Commit.
func (r *recording) untilKeys(keys ...string) {
	r.t.Helper()
	r.until(fmt.Sprintf("state of %v", keys), func() bool {
		state := r.State()
		for _, key := range keys {
			if _, ok := state[key]; !ok {
				return false
			}
		}
		return len(state) == len(keys) && len(r.Commits()) > 0
	})
}
