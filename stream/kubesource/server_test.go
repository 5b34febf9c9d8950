package kubesource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/streamtest"
)

// The tests of this file are against the real API server.

// recording is a Watch call under way, and what it said.
type recording struct {
	*streamtest.SinkRecorder
	t      testing.TB
	values *lastValues
	cancel context.CancelFunc
	ended  chan struct{} // closed when Watch has returned
	err    error         // read after ended
}

// lastValues remembers the newest value of each key, whole.
type lastValues struct {
	stream.Sink
	of map[string]string // read after the call ended
}

func (l *lastValues) Upsert(r stream.Resource) error {
	l.of[r.Key] = string(r.Value)
	return l.Sink.Upsert(r)
}

// record calls Watch, from where an earlier call stopped or from nothing.
func record(t testing.TB, s *Source, from *recording) *recording {
	t.Helper()
	var resume stream.Resume
	var state streamtest.State
	if from != nil {
		resume, state = from.Resume(), from.State()
	}
	return recordAt(t, s, resume, state)
}

func recordAt(t testing.TB, s *Source, resume stream.Resume, state streamtest.State) *recording {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &recording{
		SinkRecorder: streamtest.NewSinkRecorder(resume, state),
		t:            t, cancel: cancel, ended: make(chan struct{}),
	}
	r.values = &lastValues{r.SinkRecorder, map[string]string{}}
	go func() {
		defer close(r.ended)
		r.err = s.Watch(ctx, resume, r.values)
		r.End()
	}()
	t.Cleanup(func() {
		r.stop()
		if err := r.Err(); err != nil {
			t.Errorf("the contract of Sink was broken: %v", err)
		}
	})
	return r
}

func (r *recording) stop() {
	r.cancel()
	<-r.ended
}

// until waits until it is so, and fails if Watch returns before.
func (r *recording) until(what string, so func() bool) {
	r.t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		changed := r.Changed()
		if so() {
			return
		}
		select {
		case <-changed:
		case <-r.ended:
			if so() {
				return
			}
			r.t.Fatalf("Watch returned (%v) before %s", r.err, what)
		case <-late.C:
			r.t.Fatalf("still no %s; there are %v", what, r.State())
		}
	}
}

// untilKeys waits until these are what is there, as of a Commit.
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

// failure waits until Watch returns, and returns what of.
func (r *recording) failure() error {
	r.t.Helper()
	r.until("an error", func() bool {
		select {
		case <-r.ended:
			return true
		default:
			return false
		}
	})
	return r.err
}

// TestWhatTheServerWrites is what subscribers get, byte for byte, but for
// managedFields; whether it comes in a list, streamed or live.
func TestWhatTheServerWrites(t *testing.T) {
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

// TestLeavingASelector is a deletion.
func TestLeavingASelector(t *testing.T) {
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

// TestServerWithoutStreamingList is a real one that has the feature switched off.
func TestServerWithoutStreamingList(t *testing.T) {
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

// TestExpired begins where the server has forgotten everything.
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

// TestResourceIsDeletedAndMadeAgain as a subscriber sees it: what was deleted is
// deleted, the watch says what is missing, and goes on.
func TestResourceIsDeletedAndMadeAgain(t *testing.T) {
	k := sharedKind(t)
	k.mustPut("one", "a", `1`)
	registry := stream.NewRegistry()
	defer registry.Close()
	watch, err := registry.Add(stream.WatchConfig{
		Name: "w", SourceName: "cluster", Source: mustNew(t, k.config()),
		Backoff: stream.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}, StaleAfter: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	count := func(n int) func() bool {
		return func() bool { return watch.Status().State == stream.InSync && watch.View().Count() == n }
	}
	k.await("one object", count(1))
	k.remove()
	missing := fmt.Sprintf("the server has no resource %q", k.plural)
	k.await("status", func() bool {
		s := watch.Status()
		return s.State == stream.Stale && (strings.Contains(s.Reason, missing) || strings.Contains(s.Reason, `the server has no group "example.com"`))
	})
	if n := watch.View().Count(); n != 0 {
		t.Errorf("%d objects of a resource that was deleted, want none", n)
	}
	k.declare()
	k.mustPut("one", "b", `1`)
	k.mustPut("one", "c", `1`)
	k.await("two objects", count(2))
}

// TestBackup puts etcd back to what it was: the same cluster, with a revision
// that is lower, and later with one that is higher again.
func TestBackup(t *testing.T) {
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
		t.Error("who does not know of the restore names the order otherwise than before")
	}
}

// tokens lets the server know tokens, by the user that each names.
func (c *cluster) tokens(lines ...string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.data(), "tokens"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func TestPermissions(t *testing.T) {
	k := ownCluster(t).kind(true)
	k.tokens("admin admin", "reads reader", "idles nobody")
	k.mustPut("one", "a", `1`)
	as := func(user string) Config {
		c := k.config()
		c.Kubeconfig = k.kubeconfig(k.server.Addr(), user)
		return c
	}
	reader, owner := record(t, mustNew(t, as(`{token: reads}`)), nil), record(t, mustNew(t, k.config()), nil)
	reader.untilKeys("one/a")
	owner.untilKeys("one/a")
	if reader.Resume().Epoch == owner.Resume().Epoch {
		t.Error("who may not see the definition names the order as who may: by what?")
	}
	if err := record(t, mustNew(t, as(`{token: idles}`)), nil).failure(); err == nil ||
		!strings.Contains(err.Error(), `User "nobody" cannot watch resource`) || !strings.Contains(err.Error(), "want a role that may list and watch it") {
		t.Errorf("who may do nothing gets %v", err)
	}
	if err := record(t, mustNew(t, as(`{token: s3cret}`)), nil).failure(); err == nil ||
		!strings.Contains(err.Error(), "Unauthorized; want credentials that the server knows") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("who is not known gets %v", err)
	}
}

// TestTokenThatIsTakenAway and replaced, in a file, and by a plugin.
func TestTokenThatIsTakenAway(t *testing.T) {
	k := ownCluster(t).kind(true)
	k.tokens("admin admin", "old reader")
	token := writeFile(t, "token", "old\n")
	plugin := writeFile(t, "plugin", "#!/bin/sh\nprintf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"%s\"}}' \"$(cat "+token+")\"\n")
	if err := os.Chmod(plugin, 0o700); err != nil {
		t.Fatal(err)
	}
	users := map[string]string{"a file": fmt.Sprintf(`{tokenFile: %q}`, token)}
	if _, err := exec.LookPath("/bin/sh"); err == nil {
		users["a plugin"] = fmt.Sprintf(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}}`, plugin)
	}
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			k := k.in(t)
			k.tokens("admin admin", "old reader")
			if err := os.WriteFile(token, []byte("old\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := k.config()
			c.Kubeconfig = k.kubeconfig(k.server.Addr(), user)
			s := mustNew(t, c)
			r := record(t, s, nil)
			r.untilKeys()
			r.stop()
			k.tokens("admin admin", "new reader")
			if err := record(t, s, r).failure(); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
				t.Fatalf("with the old token: %v", err)
			}
			if err := os.WriteFile(token, []byte("new\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			// A plugin is asked again once its credentials were refused.
			k.await("the new token", func() bool {
				again := record(t, s, r)
				again.until("an answer", func() bool {
					select {
					case <-again.ended:
						return true
					default:
						return len(again.Commits()) > 0
					}
				})
				again.stop()
				return len(again.Commits()) > 0
			})
		})
	}
}

func TestNamesThatTheServerDoesNotKnow(t *testing.T) {
	k := sharedKind(t)
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"a group", func(c *Config) { c.Group = "example.org" }, `the server has no group "example.org"; want the name of an API group`},
		{"a version", func(c *Config) { c.Version = "v7" }, `the server has no version "v7" of the group example.com; want v1`},
		{"a resource", func(c *Config) { c.Resource = "gadgets" }, `the server has no resource "gadgets" in example.com/v1; want the plural name of one: widgets`},
		{"the core group", func(c *Config) { c.Group = "" }, `the server has no version "v1" of the core group; want v1, or the name of a group`},
		{"a field", func(c *Config) { c.FieldSelector = "spec.x=1" }, `field label not supported: spec.x`},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := k.in(t).config()
			c.change(&config)
			err := record(t, mustNew(t, config), nil).failure()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "kubernetes https://127.0.0.1:") {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
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
