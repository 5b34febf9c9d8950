package consul

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// fakeHTTP is the HTTP API of a Consul in memory, whose answers a test writes. Blocking queries wait
// until there is another answer.
type fakeHTTP struct {
	mu      sync.Mutex // guards what follows
	said    page
	changed chan struct{} // closed when there is another answer
	leader  string
	cluster string
	floor   uint64
	// datacenter is that of the collection; "": the server's own, whose store otherwise has the index elsewhere, and
	// whose servers have the leader leaderElsewhere.
	datacenter      string
	elsewhere       uint64
	leaderElsewhere string
	requests        []string // of the collection: their queries
	tokens          []string
	silent          bool // nothing is answered
}

// page is an answer of the collection.
type page struct {
	index  uint64
	body   string
	status int // 0: 200
	header map[string]string
}

func newFakeHTTP() *fakeHTTP {
	return &fakeHTTP{changed: make(chan struct{}), leader: "10.0.0.1:8300", cluster: "11111111.consul"}
}

// say has another answer given.
func (f *fakeHTTP) say(p page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = p
	close(f.changed)
	f.changed = make(chan struct{})
}

// keys is an answer with keys "a@5=x": their names, revisions and values.
func keys(index uint64, text string) page {
	type kv struct {
		Key                             string
		Value                           []byte
		Flags, CreateIndex, ModifyIndex uint64
	}
	list := []kv{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		name, at, _ := strings.Cut(name, "@")
		at, created, _ := strings.Cut(at, "#")
		k := kv{Key: "app/" + name, Value: []byte(value)}
		k.ModifyIndex, _ = strconv.ParseUint(at, 10, 64)
		k.CreateIndex, _ = strconv.ParseUint(created, 10, 64)
		list = append(list, k)
	}
	body, _ := json.Marshal(list)
	if len(list) == 0 {
		return page{index: index, status: http.StatusNotFound}
	}
	return page{index: index, body: string(body)}
}

// with adds a header.
func (p page) with(name, value string) page {
	p.header = map[string]string{name: value}
	return p
}

func (f *fakeHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	silent := f.silent
	f.mu.Unlock()
	if silent {
		<-r.Context().Done()
		return
	}
	switch path := r.URL.Path; {
	case path == "/v1/status/leader":
		f.mu.Lock()
		defer f.mu.Unlock()
		leader := f.leader
		if r.URL.Query().Get("dc") != f.datacenter {
			leader = f.leaderElsewhere
		}
		fmt.Fprintf(w, "%q", leader)
	case path == "/v1/connect/ca/roots":
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprintf(w, `{"TrustDomain":%q}`, f.cluster)
	case strings.HasSuffix(path, probeName):
		f.mu.Lock()
		defer f.mu.Unlock()
		index := f.floor
		if r.URL.Query().Get("dc") != f.datacenter {
			index = f.elsewhere
		}
		w.Header().Set(indexHeader, fmt.Sprint(index))
		w.WriteHeader(http.StatusNotFound)
	default:
		f.answer(w, r)
	}
}

func (f *fakeHTTP) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.URL.Path+"?"+r.URL.RawQuery)
	f.tokens = append(f.tokens, r.Header.Get(tokenHeader))
	f.mu.Unlock()
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		f.mu.Lock()
		said, changed := f.said, f.changed
		f.mu.Unlock()
		if r.URL.Query().Get("index") != fmt.Sprint(said.index) || said.status >= 400 && said.status != http.StatusNotFound {
			said.write(w)
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			said.write(w)
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (p page) write(w http.ResponseWriter) {
	w.Header().Set(leaderHeader, "true")
	w.Header().Set(contactHeader, "0")
	if p.index > 0 {
		w.Header().Set(indexHeader, fmt.Sprint(p.index))
	}
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	fmt.Fprint(w, p.body)
}

// asked returns the requests since the last time.
func (f *fakeHTTP) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.requests
	f.requests = nil
	return all
}

// httpBubble runs a source of a fake in fake time, as bubble does.
func httpBubble(t *testing.T, f *fakeHTTP, c Config, test func(t *testing.T, s *Queried, watch func() *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f.changed = make(chan struct{}) // of this bubble
		network := make(memoryNet)
		server := &http.Server{Handler: f}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(network.listener()) })
		c.HTTPAddress, c.network = "consul.test:8500", network.dial
		if c.Collection == "" {
			c.Collection, c.Prefix = KV, "app/"
		}
		s, err := NewQueried(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		defer func() {
			cancel()
			watching.Wait()
			_ = server.Close()
			serving.Wait()
		}()
		test(t, s, func() *running {
			r := &running{ended: make(chan struct{})}
			watching.Go(func() {
				defer close(r.ended)
				r.err = s.Watch(ctx, stream.Resume{}, &r.lines)
			})
			return r
		})
	})
}
