package gateway_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/watchtide/watchtide/client"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// altering is a proxy that changes the events of streams while it is told to.
type altering struct {
	*httptest.Server
	on atomic.Bool
}

func newAltering(t *testing.T, to string) *altering {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	a := &altering{}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/events") {
			r.Body = alteredBody{r.Body, a}
		}
		return nil
	}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = u.Host
		r.Header.Set("Accept-Encoding", "identity") // what is altered must be text
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

type alteredBody struct {
	io.ReadCloser
	by *altering
}

// Read reads events. A delete becomes something that no client knows, and a value of 2 one of 9.
func (b alteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.by.on.Load() {
		for from, to := range map[string]string{"event: delete": "event: ignore", `"type":"delete"`: `"type":"ignore"`, `"value":2`: `"value":9`} {
			copy(p, bytes.ReplaceAll(p[:n], []byte(from), []byte(to)))
		}
	}
	return n, err
}

// events are those that a client of a watch is handed.
type events struct {
	mu  sync.Mutex // guards the following field
	all []client.Event
}

func (e *events) follow(t *testing.T, at string, options ...client.WatchOption) {
	t.Helper()
	c, err := client.New(at, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for one, err := range c.Watch(ctx, "notes", options...) {
			if err == nil {
				e.mu.Lock()
				e.all = append(e.all, one)
				e.mu.Unlock()
			}
		}
	}()
}

// made are the resets and the changes so far.
func (e *events) made() (made []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.all {
		switch one.Type {
		case client.Reset:
			made = append(made, "reset")
		case client.Upsert:
			made = append(made, one.Key+"="+string(one.Value))
		case client.Delete:
			made = append(made, "-"+one.Key)
		}
	}
	return made
}

// TestAlteredEvents: a proxy between two gateways loses a delete and changes a value. The gateway behind it notices at the next
// bookmark. Its clients that verify are sent the difference, and the others begin again.
func TestAlteredEvents(t *testing.T) {
	upstream := streamtest.NewUpstream("e", streamtest.OwnRevision)
	end, root := upstream.Replica(), newNode(t)
	commit := func(writes ...streamtest.Write) {
		upstream.Commit(1, writes...)
		end.Catch(-1)
	}
	commit(streamtest.Write{Key: "kept", Value: "1"}, streamtest.Write{Key: "changed", Value: "1"}, streamtest.Write{Key: "gone", Value: "1"})
	first := watch.NewRegistry()
	at := add(t, first, "notes", end)
	root.start(first)
	prime(t, at)
	proxy := newAltering(t, root.url())
	u, err := gatewaysource.New(gatewaysource.Config{URL: proxy.URL})
	if err != nil {
		t.Fatal(err)
	}
	registry := watch.NewRegistry()
	leaf := add(t, registry, "notes", source(t, u, "notes", ""))
	n := newNode(t)
	n.start(registry)
	prime(t, leaf)
	verifying, other := &events{}, &events{}
	verifying.follow(t, n.url(), client.Verifying())
	other.follow(t, n.url())
	await(t, leaf, func() bool { return len(verifying.made()) == 4 && len(other.made()) == 4 })

	proxy.on.Store(true)
	commit(streamtest.Write{Key: "changed", Value: "2"}, streamtest.Write{Key: "gone", Delete: true})
	await(t, leaf, func() bool { return leaf.Snapshot().Revision() == upstream.Revision() })
	commit() // of something else: a bookmark says how far the watch is
	await(t, leaf, func() bool { return leaf.Stats().DigestMismatches > 0 })
	proxy.on.Store(false)
	await(t, leaf, func() bool {
		return leaf.Snapshot().Digest() == at.Snapshot().Digest() && leaf.Status().State == stream.InSync
	})
	for r := range at.Snapshot().Resources() {
		if has, ok := leaf.Snapshot().Get(r.Key); !ok || has.Revision != r.Revision {
			t.Errorf("%s is at %d, want %d", r.Key, has.Revision, r.Revision)
		}
	}
	commit(streamtest.Write{Key: "later", Value: "3"})
	later := func(e *events) bool { return slices.Contains(e.made(), "later=3") }
	await(t, leaf, func() bool { return later(verifying) && later(other) })

	made := slices.DeleteFunc(verifying.made()[4:], func(s string) bool { return s == "changed=9" })
	slices.Sort(made)
	if want := []string{"-gone", "changed=2", "later=3"}; !slices.Equal(made, want) {
		t.Errorf("the client that verifies was handed %q, want %q", made, want)
	}
	if made := other.made()[4:]; !slices.Contains(made, "reset") || slices.Contains(made, "gone=1") {
		t.Errorf("the other client was handed %q", made)
	}
}
