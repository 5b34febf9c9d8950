//go:build servers

package deploy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
)

// changes and resources are how many there are while the bytes are counted that a deployment costs.
var (
	changes   = flag.Int("changes", 20, "count what a deployment costs under so many changes a second")
	resources = flag.Int("resources", 5000, "count what a deployment costs with so many resources")
)

// TestResentBehindProxies measures what a deployment costs: how many bytes are sent again to clients that
// come back, half of which resume by position alone, and half by digest where that is not possible.
// Each upstream has the same resources.
func TestResentBehindProxies(t *testing.T) {
	for _, p := range []proxy{haproxy, nginx} {
		for _, u := range upstreams {
			t.Run(p.program+"/"+u.name, func(t *testing.T) {
				alongside(t)
				all, n := 500, 20
				if *full {
					all, n = *resources, *clients
				}
				s := newDeployment(t, p, u, all, n)
				for _, r := range s.replicas {
					if *full {
						<-time.After(u.pause)
					}
					r.stop()
					r.start()
				}
				rolling := s.figures("rolling restart")
				s.replicas[0].Kill()
				s.settle()
				s.replicas[0].start()
				s.figures("kill -9 of one")
				for _, r := range s.replicas {
					r.Kill()
				}
				for _, r := range s.replicas {
					r.start()
				}
				killed := s.figures("all at once")
				s.expectExact()
				if u.numbered && rolling.resets+killed.resets > 0 {
					t.Errorf("%d and %d resets, although the upstream knows each delete", rolling.resets, killed.resets)
				}
				if byDigest := rolling.resetsByDigest + killed.resetsByDigest; byDigest > 0 {
					t.Errorf("%d resets to clients that verify", byDigest)
				}
			})
		}
	}
}

// deployment is three replicas behind a proxy, and what their clients are sent again.
type deployment struct {
	t        *testing.T
	origin   *truth
	replicas []*replica
	clients  []*counting
	held     int                                // how many keep what they are sent, of those that verify
	copies   []*client.Replica[json.RawMessage] // of the first of these, which keep values
	quiet    func()                             // ends the changes
	changed  atomic.Int64                       // how many there were since
	since    time.Time                          // the last figures
	snapshot int64                              // bytes of one
}

func newDeployment(t *testing.T, p proxy, u upstream, resources, n int) *deployment {
	o := &truth{origin: u.start(t), values: map[string]string{}}
	writes := make([]streamtest.Write, resources)
	for i := range writes {
		writes[i] = streamtest.Write{Key: fmt.Sprint("resource/", i), Value: longValue(i)}
	}
	o.make(writes...)
	d := &deployment{t: t, origin: o}
	var addresses []string
	for range 3 {
		r := newReplica(t, o.sources(t), timesOf(2*time.Second).section())
		d.replicas, addresses = append(d.replicas, r), append(addresses, r.address)
	}
	url := p.start(t, addresses...)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for i := range n {
		c := &counting{base: newTransport(), verifies: i%2 == 1}
		if i > 0 { // what holds nothing needs no snapshot either
			c.id = d.clients[0].position()
		}
		d.clients = append(d.clients, c)
		if holds := d.held < mostHeld || !u.numbered; !c.verifies || !holds {
			ask := url + "/v1/events?watch=services"
			if c.verifies { // which is not needed where each delete is known
				ask += "&digest=1&resume=digest"
			}
			running.Go(func() {
				if err := c.follow(ctx, ask); err != nil {
					t.Errorf("a client gave up: %v", err)
				}
			})
			if i == 0 {
				d.settle()
				d.snapshot = c.take().bytes
			}
			continue
		}
		d.held++
		server, err := client.New(url, client.Options{Transport: c})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		if len(d.copies) >= mostCopies {
			hashed := client.ReplicaOf[nothing](ctx, server, "services")
			t.Cleanup(hashed.Close)
			c.verify(hashed)
			continue
		}
		copied := client.ReplicaOf[json.RawMessage](ctx, server, "services")
		t.Cleanup(copied.Close)
		d.copies = append(d.copies, copied)
		c.verify(copied)
	}
	d.settle()
	for _, c := range d.clients {
		c.take()
	}
	running.Go(func() { d.look(ctx) })
	d.since = time.Now()
	d.quiet = o.changeAny(resources, *changes, &d.changed)
	t.Cleanup(d.quiet)
	return d
}

// mostHeld is how many clients keep what they are sent, and mostCopies how many of these keep values, and not only hashes of
// them, so that many have room. Where each delete is known no client has to verify what it holds, so the others ask for
// digests, and hold nothing. One that were asked to verify would never catch up.
const mostHeld, mostCopies = 60, 20

// nothing is what is kept of a value.
type nothing struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*nothing) UnmarshalJSON([]byte) error { return nil }

// longValue returns a value of about 300 bytes that nothing compresses well.
func longValue(n int) string {
	text := make([]byte, 280)
	for i := range text {
		text[i] = byte('a' + rand.IntN(26))
	}
	return fmt.Sprintf(`{"n":%d,"text":%q}`, n, text)
}

// upstream is a kind of upstream of a deployment.
type upstream struct {
	name     string
	numbered bool // each delete has a revision that all replicas know
	// pause is how long all replicas are ready before the next one is stopped, in full runs. Positions of NATS say how far a replica has
	// compared the keys, which it does every five seconds: another one that has begun later does not resume them.
	pause time.Duration
	start func(*testing.T) origin
}

// upstreams are of each kind.
var upstreams = []upstream{
	{name: "store", numbered: true, start: storeOrigin},
	{name: "without revisions of deletes", start: unnumberedOrigin},
	{name: "nats", pause: 10 * time.Second, start: natsOrigin},
	{name: "files", start: filesOrigin},
}

// storeOrigin is a store behind a gateway. Each write is a transaction.
func storeOrigin(t *testing.T) origin {
	s := store.New(store.Config{})
	t.Cleanup(s.Close) // after what serves it
	to := s.Writer("services")
	return origin{sources: shared(following(serve(t, s.Source("services")))), commit: func(writes ...streamtest.Write) {
		for _, w := range writes {
			var err error
			if w.Delete {
				_, err = to.Delete(context.Background(), stream.DeleteRequest{Key: w.Key})
			} else {
				_, _, err = to.Put(context.Background(), stream.PutRequest{Key: w.Key, Value: []byte(w.Value)})
			}
			if err != nil {
				t.Errorf("the upstream refused a write: %v", err)
			}
		}
	}}
}

// unnumberedOrigin is behind a gateway too, and gives deletes no revision.
func unnumberedOrigin(t *testing.T) origin {
	b := newBackendOf(t, streamtest.NoRevision)
	b.commit(streamtest.Write{Key: "a/b//c", Delete: true})
	return origin{sources: shared(following(b.url)), commit: b.commit}
}

// natsOrigin is a bucket of NATS.
func natsOrigin(t *testing.T) origin {
	server := realserver.Start(t, realserver.Build(t, "nats"), "-listen", realserver.FreeAddress(t), "-data", t.TempDir())
	conn, err := nats.Connect("nats://" + server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
	t.Cleanup(func() { conn.Close(); <-closed })
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "services"})
	if err != nil {
		t.Fatal(err)
	}
	return origin{
		sources: shared(fmt.Sprintf("sources: { core: { type: nats, url: \"nats://%s\" } }\nwatches: { services: { source: core, bucket: services, required: true } }\n", server.Addr())),
		commit: func(writes ...streamtest.Write) {
			for _, w := range writes {
				var err error
				if w.Delete {
					err = bucket.Delete(context.Background(), w.Key)
				} else {
					_, err = bucket.Put(context.Background(), w.Key, []byte(w.Value))
				}
				if err != nil {
					t.Errorf("NATS refused a write: %v", err)
				}
			}
		},
	}
}

// filesOrigin is a directory that all replicas read. Each has a folder for its journal.
func filesOrigin(t *testing.T) origin {
	dir := t.TempDir()
	return origin{
		sources: func(t *testing.T) string {
			return fmt.Sprintf("state: { dir: %q }\nsources: { core: { type: files, dir: %q } }\nwatches: { services: { source: core, required: true } }\n", stateDir(t), dir)
		},
		commit: func(writes ...streamtest.Write) {
			for _, w := range writes {
				path := filepath.Join(dir, filepath.FromSlash(w.Key)+".json")
				err := os.MkdirAll(filepath.Dir(path), 0o755)
				switch {
				case err != nil:
				case w.Delete:
					err = os.Remove(path)
				default:
					if err = os.WriteFile(path+".new", []byte(w.Value), 0o600); err == nil {
						err = os.Rename(path+".new", path)
					}
				}
				if err != nil {
					t.Errorf("cannot write a file: %v", err)
				}
			}
		},
	}
}

// stateDir returns a folder that only this user may read.
func stateDir(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// origin is the upstream of a deployment.
type origin struct {
	sources func(*testing.T) string          // the configuration of a replica that follows it
	commit  func(writes ...streamtest.Write) // in one transaction or more
}

// shared are sections that are the same for all replicas.
func shared(sections string) func(*testing.T) string {
	return func(*testing.T) string { return sections }
}

// truth is what an upstream has.
type truth struct {
	origin

	mu     sync.Mutex // held during a commit; guards the following field
	values map[string]string
}

// make makes writes.
func (o *truth) make(writes ...streamtest.Write) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range writes {
		if o.values[w.Key] = w.Value; w.Delete {
			delete(o.values, w.Key)
		}
	}
	o.commit(writes...)
}

// has reports whether the upstream has a resource.
func (o *truth) has(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, exists := o.values[key]
	return exists
}

// state returns what the upstream has.
func (o *truth) state() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.values)
}

// changeAny makes some changes a second, a third of them deletes of what is there, until the returned function is called.
func (o *truth) changeAny(resources, each int, changed *atomic.Int64) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	const most = 10 // times a second
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second / most)
		defer tick.Stop()
		for ticks, made := 1, 0; ; ticks++ {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			var writes []streamtest.Write
			for first := rand.IntN(resources); made < ticks*each/most; made++ {
				key := fmt.Sprint("resource/", (first+len(writes))%resources) // no key twice
				writes = append(writes, streamtest.Write{Key: key, Value: longValue(made), Delete: made%3 == 0 && o.has(key)})
			}
			if len(writes) > 0 {
				o.make(writes...)
				changed.Add(int64(len(writes)))
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-stopped
	})
}

// loadPatience is how much longer all may take to load the state for each client: many do it in the process of the test.
const loadPatience = 100 * time.Millisecond

// look looks all the time which clients have verified what they hold, since a later bookmark verifies it again.
func (d *deployment) look(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, c := range d.clients {
			c.caughtUp()
		}
	}
}

// settle waits until every client has a stream that has caught up, and has verified what it holds if it was asked to.
func (d *deployment) settle() {
	d.t.Helper()
	patience := patience + time.Duration(len(d.clients))*loadPatience
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		away := 0
		for _, c := range d.clients {
			if !c.caughtUp() {
				away++
			}
		}
		if away == 0 {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%d of %d clients have not caught up after %v", away, len(d.clients), patience)
		}
	}
}

// resent is what clients were sent before they had caught up.
type resent struct {
	bytes  int64
	resets int
	gone   int // requests about a digest that a replica did not have
	gaps   []time.Duration

	resetsByDigest int
}

// figures waits until all clients have caught up, and prints and returns what it took.
func (d *deployment) figures(what string) (all resent) {
	d.t.Helper()
	d.settle()
	took := time.Since(d.since)
	d.t.Logf("%s | took %.1f s, %.0f changes/s", what, took.Seconds(), float64(d.changed.Swap(0))/took.Seconds())
	d.since = time.Now()
	for _, verifies := range []bool{false, true} {
		var some resent
		n := 0
		for _, c := range d.clients {
			if c.verifies == verifies {
				one := c.take()
				some.bytes, some.resets, some.gone = some.bytes+one.bytes, some.resets+one.resets, some.gone+one.gone
				some.gaps, n = append(some.gaps, one.gaps...), n+1
			}
		}
		slices.Sort(some.gaps)
		gap := "none was cut off"
		if gaps := len(some.gaps); gaps > 0 {
			gap = fmt.Sprintf("cut off %d times, gap p50 %.1f s, p99 %.1f s", gaps, some.gaps[gaps/2].Seconds(), some.gaps[gaps*99/100].Seconds())
		}
		d.t.Logf("%s | %d clients, verify: %t | %d snapshots, %d answers of 410 | %d bytes, %.2f %% of a snapshot for each | %s",
			what, n, verifies, some.resets, some.gone, some.bytes, 100*float64(some.bytes)/float64(int64(n)*d.snapshot), gap)
		all.resets += some.resets
		if verifies {
			all.resetsByDigest += some.resets
		}
	}
	return all
}

// expectExact checks that clients that verify hold what the upstream holds.
func (d *deployment) expectExact() {
	d.t.Helper()
	d.quiet()
	want, deadline := d.origin.state(), time.Now().Add(patience)
	for _, copied := range d.copies {
		for {
			held := maps.Collect(copied.All())
			if maps.EqualFunc(held, want, func(is json.RawMessage, want string) bool { return string(is) == want }) {
				break
			}
			if time.Now().After(deadline) {
				d.t.Fatalf("a client holds %d resources, and the upstream %d, or their values differ", len(held), len(want))
			}
			select {
			case <-copied.Changed():
			case <-time.After(time.Second):
			}
		}
	}
}

// counting is the transport of one client. It counts the bytes of each stream until that has caught up,
// and of all answers about digests.
type counting struct {
	// Static after construction.
	base     http.RoundTripper
	verifies bool

	mu       sync.Mutex // guards the following fields
	id       string     // the last one, if it follows as an EventSource does
	held     verified   // nil: what it has is not verified
	resent   resent
	lost     time.Time // when the last stream ended; zero: one is open
	open     bool      // a stream has caught up
	primed   bool      // so has one at any time
	asked    time.Time // when a stream has asked to verify what is held; zero: it has not
	awaiting bool      // the gap ends once that is done
}

// verified says when what it has was last found to be what the server has.
type verified interface{ Verified() time.Time }

// verify sets what the client has.
func (c *counting) verify(held verified) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = held
}

// follow follows a stream as a browser's EventSource does, and keeps the id alone. After an answer of the proxy that no replica is
// there it asks again, as a page does that makes another EventSource. It returns an error if it is refused otherwise.
func (c *counting) follow(ctx context.Context, url string) error {
	retry := 3 * time.Second
	for ctx.Err() == nil {
		id := c.position()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", "text/event-stream")
		if id != "" {
			request.Header.Set("Last-Event-ID", id)
		}
		if response, err := c.RoundTrip(request); err == nil {
			if !slices.Contains([]int{http.StatusOK, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, response.StatusCode) {
				response.Body.Close()
				return fmt.Errorf("%s", response.Status)
			}
			lines, next := bufio.NewReaderSize(response.Body, 16<<10), id
			for {
				line, err := lines.ReadSlice('\n') // of a line that is longer, the rest is taken for another one
				if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
					break
				}
				if len(line) == 1 { // the end of an event
					if next != id {
						id = next
						c.reach(id)
					}
				} else if after, is := bytes.CutPrefix(line, []byte("id: ")); is {
					next = string(bytes.TrimSpace(after))
				} else if after, is := bytes.CutPrefix(line, []byte("retry: ")); is {
					ms, _ := strconv.Atoi(string(bytes.TrimSpace(after)))
					retry = time.Duration(ms) * time.Millisecond
				}
			}
			response.Body.Close()
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
		}
	}
	return nil
}

func (c *counting) position() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

func (c *counting) reach(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = id
}

// caughtUp reports whether the client has all that its stream has. One that is asked to verify what it holds has it once it has
// done that.
func (c *counting) caughtUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.open:
		return false
	case !c.awaiting:
		return true
	case c.held == nil || c.held.Verified().Before(c.asked):
		return false
	}
	c.resent.gaps = append(c.resent.gaps, c.held.Verified().Sub(c.lost))
	c.lost, c.awaiting = time.Time{}, false
	return true
}

// take returns what was counted since the last call.
func (c *counting) take() (counted resent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted, c.resent = c.resent, resent{}
	return counted
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.base.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusGone {
		c.mu.Lock()
		c.resent.gone++
		c.mu.Unlock()
	}
	if err == nil && response.StatusCode == http.StatusOK {
		stream := strings.HasSuffix(r.URL.Path, "/events")
		response.Body = &countedBody{ReadCloser: response.Body, of: c, stream: stream}
	}
	return response, err
}

// countedBody is a stream, or an answer about digests.
type countedBody struct {
	io.ReadCloser
	of     *counting
	stream bool
	done   bool   // it has caught up
	tail   []byte // the end of what was read
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if !b.done {
		b.of.resent.bytes += int64(n)
	}
	if b.stream {
		b.look(p[:n])
		if err != nil { // also if the client itself ends it, since it could not verify what it holds
			if b.of.open = false; b.of.lost.IsZero() {
				b.of.lost = time.Now()
			}
		}
	}
	return n, err
}

func hasAny(text []byte, of ...[]byte) bool {
	return slices.ContainsFunc(of, func(one []byte) bool { return bytes.Contains(text, one) })
}

// look looks for the events that matter. of.mu is held.
func (b *countedBody) look(read []byte) {
	if b.done {
		return
	}
	reset, end := []byte(`"type":"reset"`), []byte(`"type":"end_of_snapshot"`)
	seam := append(b.tail, read[:min(len(read), len(end))]...)
	if len(seam) < 2*len(end) && len(read) >= len(end) && !hasAny(seam, reset, end) && !hasAny(read, reset, end) { // most reads of a snapshot
		b.tail = append(b.tail[:0], read[len(read)-len(end)+1:]...)
		return
	}
	text := append(b.tail, read...)
	if bytes.Contains(text, reset) && b.of.primed {
		b.of.resent.resets++
	}
	if before, event, ends := bytes.Cut(text, end); ends {
		event, _, whole := bytes.Cut(event, []byte("\n"))
		if !whole {
			b.tail = slices.Clone(text[len(before):])
			return
		}
		b.done, b.of.open, b.of.primed = true, true, true
		if b.of.awaiting = bytes.Contains(event, []byte(`"verify":true`)); b.of.awaiting {
			b.of.asked = time.Now()
			return
		}
		if !b.of.lost.IsZero() {
			b.of.resent.gaps = append(b.of.resent.gaps, time.Since(b.of.lost))
		}
		b.of.lost = time.Time{}
		return
	}
	b.tail = slices.Clone(text[max(0, len(text)-len(end)+1):])
	if i := bytes.Index(b.tail, reset); i >= 0 {
		b.tail = b.tail[i+len(reset):] // it was counted
	}
}
