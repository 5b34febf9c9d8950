//go:build servers

package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream/store"
)

// counting counts the bytes of answers.
type counting struct {
	next  http.RoundTripper
	bytes atomic.Int64
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	if err == nil {
		response.Body = &countedBody{response.Body, c}
	}
	return response, err
}

type countedBody struct {
	io.ReadCloser
	of *counting
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.of.bytes.Add(int64(n))
	return n, err
}

// storeFile makes the file of a store with resources of 300 bytes in the watch notes.
func storeFile(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notes.db")
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"watch":"notes","key":"k.%d","value":{"n":%d,"text":"%0300d"}}`+"\n", i, i, i)
	}
	fmt.Fprintf(&lines, `{"end":%d}`, n)
	if _, err := store.Import(path, strings.NewReader(lines.String())); err != nil {
		t.Fatal(err)
	}
	return path
}

// movers is how many clients come back after a move of a store, of which moversAtOnce are connected at a time: both ends of
// their connections are descriptors of the test.
var movers = flag.Int("movers", 500, "move a store under so many clients")

const moversAtOnce = 2000

// readUpTo is what a stream has up to the first end of a snapshot.
type readUpTo struct {
	id, digest            string
	bytes, events, resets int // events are upserts and deletes
}

// byDigest makes a stream resume by digest.
const byDigest = "&digest=1&resume=digest"

// readUp reads a stream of the watch notes up to the first end of a snapshot.
func readUp(ctx context.Context, address, id, with string) (c readUpTo, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/events?watch=notes"+with, nil)
	if err != nil {
		return c, err
	}
	if id != "" {
		request.Header.Set("Last-Event-ID", id)
	}
	response, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(request)
	if err != nil {
		return c, err
	}
	defer response.Body.Close()
	ended := false
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return c, fmt.Errorf("status %d, %w", response.StatusCode, err)
		}
		c.bytes += len(line)
		switch line = strings.TrimSuffix(line, "\n"); {
		case line == "event: reset":
			c.resets++
		case line == "event: upsert", line == "event: delete":
			c.events++
		case strings.HasPrefix(line, `data: {"type":"end_of_snapshot"`):
			var e struct{ Digest string }
			if err := json.Unmarshal([]byte(line[len("data: "):]), &e); err != nil {
				return c, err
			}
			c.digest, ended = e.Digest, true
		case strings.HasPrefix(line, "id: "):
			c.id = line[len("id: "):]
		case line == "" && ended:
			return c, nil
		}
	}
}

// comeBack has many clients come back that hold the state with a digest, and returns the bytes that they were sent.
func comeBack(t *testing.T, address, id, digest string) (bytes int64) {
	t.Helper()
	var sent atomic.Int64
	var left atomic.Int64
	left.Store(int64(*movers))
	var all sync.WaitGroup
	for range min(*movers, moversAtOnce) {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				c, err := readUp(t.Context(), address, id, byDigest)
				sent.Add(int64(c.bytes))
				if err != nil || c.resets > 0 || c.digest != digest {
					t.Errorf("error %v, %d resets; the digest is %s, what is held has %s", err, c.resets, c.digest, digest)
					return
				}
			}
		})
	}
	all.Wait()
	return sent.Load()
}

// TestMoveOfAStore: resources go from a store to another upstream, and clients that hold them are
// sent no snapshot.
func TestMoveOfAStore(t *testing.T) {
	for name, upstream := range map[string]func(t *testing.T) (sources string, put func()){
		"etcd": func(t *testing.T) (string, func()) {
			address, put := withEtcd(t)
			return `sources: { kv: { type: etcd, endpoints: ["` + address + `"] } }
watches: { notes: { source: kv, prefix: /notes/ } }`, func() { put("/notes/k.1999.new") }
		},
		"nats": func(t *testing.T) (string, func()) {
			address, fill := withNATS(t)
			fill("notes")
			return `sources: { bus: { type: nats, url: "nats://` + address + `" } }
watches: { notes: { source: bus, bucket: notes } }`, func() { fill("notes", "k.1999.new") }
		},
		"consul": func(t *testing.T) (string, func()) {
			address, put := withConsul(t)
			return `sources: { c: { type: consul, http_address: "` + address + `" } }
watches: { notes: { source: c, collection: kv, prefix: notes/ } }`, func() { put("notes/k.1999.new") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			const resources = 2000
			path := storeFile(t, resources)
			next, put := upstream(t)
			next = "stream: { drain_delay: 0s, prime_wait: 20s, max_subscribers_per_client: 20000 }\n" + next
			conf := file(t, "next.yaml", next)
			address := realserver.FreeAddress(t)
			g := serve(t, "--http", address, "--config", file(t, "store.yaml", `
stream: { drain_delay: 0s }
sources: { local: { type: store, path: "`+path+`" } }
watches: { notes: { source: local } }
`))
			received := &counting{next: &http.Transport{}}
			c, err := client.New("http://"+address, client.Options{Transport: received})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			replica := c.Replica(t.Context(), "notes")
			defer replica.Close()
			if err := replica.Ready(inTime(t)); err != nil || replica.Len() != resources {
				t.Fatalf("%d resources, error %v", replica.Len(), err)
			}
			snapshot := received.bytes.Load()
			at, err := readUp(inTime(t), address, "", byDigest)
			if err != nil {
				t.Fatal(err)
			}
			g.signals <- os.Interrupt
			g.awaitCode()
			stopped := time.Now()

			code, stdout, stderr := command(t, "store", "export", path, "--to", conf)
			if code != 0 || stdout != "" || !strings.Contains(stderr, "2000 resources created, 0 there already") {
				t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
			}
			if code, _, stderr := command(t, "store", "export", path, "--to", conf, "--watch", "notes"); code != 0 || !strings.Contains(stderr, "0 resources created, 2000 there already") {
				t.Fatalf("again: exit code %d: %s", code, stderr)
			}
			serve(t, "--http", address, "--config", conf)
			received.bytes.Store(0)
			awaitReplica(t, replica, func() bool { return replica.Verified().After(stopped) && replica.Freshness().State == client.InSync })
			if n := received.bytes.Load(); n > snapshot/100 || replica.Len() != resources {
				t.Errorf("%d bytes were sent, and a snapshot has %d; it has %d resources", n, snapshot, replica.Len())
			} else {
				t.Logf("%d bytes were sent, and a snapshot has %d", n, snapshot)
			}
			began := time.Now()
			n := comeBack(t, address, at.id, at.digest) / int64(*movers)
			t.Logf("%d clients more were sent %d bytes each, in %v", *movers, n, time.Since(began).Round(time.Millisecond))
			if n > snapshot/100 {
				t.Errorf("they were sent %d bytes each, and a snapshot has %d", n, snapshot)
			}
			put()
			awaitReplica(t, replica, func() bool { return replica.Len() == resources+1 })
		})
	}
}

// withConsul starts a Consul, which takes minutes to compile.
func withConsul(t *testing.T) (address string, put func(key string)) {
	t.Helper()
	if os.Getenv("WATCHTIDE_FULL_CONSUL") == "" {
		t.Skip("WATCHTIDE_FULL_CONSUL is not set")
	}
	address = startConsul(t)
	return address, func(key string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+address+"/v1/kv/"+key, strings.NewReader("1"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("PUT %s: %s", key, response.Status)
		}
	}
}

// startConsul starts a Consul in memory, and waits until it has a leader.
func startConsul(t *testing.T) (address string) {
	t.Helper()
	address = realserver.FreeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	args := []string{"agent", "-dev", "-node=test", "-bind=127.0.0.1", "-client=127.0.0.1", "-http-port=" + port, "-grpc-port=-1", "-grpc-tls-port=-1", "-dns-port=-1",
		fmt.Sprint("-server-port=", realserver.FreePort(t)), fmt.Sprint("-serf-lan-port=", realserver.FreePort(t)), "-serf-wan-port=-1", "-log-level=warn", "-hcl=disable_update_check=true"}
	realserver.Command{Path: realserver.Build(t, "consul"), Args: args, Address: address}.Start(t)
	for deadline := time.Now().Add(patience); ; {
		response, err := http.Get("http://" + address + "/v1/kv/none?consistent")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusNotFound {
				return address
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("Consul has no leader")
		}
	}
}

// awaitReplica waits until a replica is as it should be.
func awaitReplica(t *testing.T, r *client.Replica[client.Resource], so func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		changed := r.Changed()
		if so() {
			return
		}
		select {
		case <-changed:
		case <-time.After(100 * time.Millisecond): // a verification changes nothing that is shown
		case <-timeout:
			t.Fatalf("%d resources at %q, %+v, verified at %v", r.Len(), r.Revision(), r.Freshness(), r.Verified())
		}
	}
}

// TestMovesThatAreRefused: nothing is overwritten, and nothing is written if something cannot be there.
func TestMovesThatAreRefused(t *testing.T) {
	etcd, put := withEtcd(t)
	nats, fill := withNATS(t)
	fill("notes", "k.3")
	put("/notes/k.3")
	path := storeFile(t, 10)
	for name, test := range map[string]struct{ source, watch, want string }{
		"etcd has another value": {`type: etcd, endpoints: ["` + etcd + `"]`, `prefix: /notes/`, `watch notes: key "k.3": the upstream has another value, which is not overwritten (`},
		"nats has another value": {`type: nats, url: "nats://` + nats + `"`, `bucket: notes`, `watch notes: key "k.3": the upstream has another value, which is not overwritten (`},
		"etcd, as texts":         {`type: etcd, endpoints: ["` + etcd + `"]`, `prefix: /a/, values: text`, "the watch would serve another value: want no values: text"},
		"nats, other keys":       {`type: nats, url: "nats://` + nats + `"`, `bucket: notes, keys: "k.*.x"`, `want one that matches "k.*.x"`},
		"nats, no bucket":        {`type: nats, url: "nats://` + nats + `"`, `bucket: none`, "want the name of a bucket that exists"},
		"no server":              {`type: etcd, endpoints: ["` + realserver.FreeAddress(t) + `"]`, `prefix: /a/`, "connection refused"},
		"consul, health":         {`type: consul, http_address: "127.0.0.1:1"`, `collection: health`, "the collection is health: want kv"},
		"consul, as JSON":        {`type: consul, http_address: "127.0.0.1:1"`, `collection: kv, values: base64`, "the watch would serve another value: want no values: base64"},
		"another type":           {`type: store`, ``, "its source s is of type store in the configuration: want one of type etcd, nats or consul"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := file(t, "next.yaml", "sources: { s: { "+test.source+" } }\nwatches: { notes: { source: s, "+test.watch+" } }\n")
			code, stdout, stderr := command(t, "store", "export", path, "--to", conf)
			if code != 1 || stdout != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d: %s%s, want %q", code, stdout, stderr, test.want)
			}
		})
	}
}
