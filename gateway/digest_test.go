package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/stream"
)

// balancer carries requests to one of several gateways, counts bytes, and records paths.
type balancer struct {
	now   atomic.Pointer[rig]
	bytes atomic.Int64
	old   bool // the gateway answers digests as one that does not know them
	mu    sync.Mutex
	asked []string // under mu: time that passes in a test orders nothing
}

// takeAsked returns the paths that were asked for since the last call.
func (b *balancer) takeAsked() (paths []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	paths, b.asked = b.asked, nil
	return paths
}

func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.asked = append(b.asked, r.URL.RequestURI())
	b.mu.Unlock()
	if b.old && r.URL.Query().Has("digest") {
		return problemAnswer(r, 400, "digest"), nil
	}
	answer, err := b.now.Load().client.Transport.RoundTrip(r)
	if err == nil {
		answer.Body = &countedBody{answer.Body, &b.bytes}
	}
	return answer, err
}

type countedBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// content returns n resources, with what differs.
func content(n int, revision uint64, differs map[int]string) (all []stream.Resource) {
	for i := range n {
		value := fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("x", 300))
		if d, is := differs[i]; is {
			if d == "" {
				continue
			}
			value = d
		}
		all = append(all, gatewaytest.Resource(fmt.Sprint("key/", i), revision, value))
	}
	return all
}

func prime(r *rig, epoch string, revision uint64, all []stream.Resource) {
	primeWatch(r, "w", epoch, revision, all)
}

func primeWatch(r *rig, watch, epoch string, revision uint64, all []stream.Resource) {
	r.Do(watch, func(sink stream.Sink) error {
		if err := sink.Reset(epoch); err != nil {
			return err
		}
		for _, one := range all {
			if err := sink.Upsert(one); err != nil {
				return err
			}
		}
		return sink.Commit(revision)
	})
	synctest.Wait()
}

func holds(replica *client.Replica[client.Resource]) map[string]string {
	state := map[string]string{}
	for id, r := range replica.All() {
		state[id] = string(r.Value)
	}
	return state
}

// TestResumeByDigest: a client comes back to a gateway that has started again, with an order of
// revisions of its own. It is sent what differs.
func TestResumeByDigest(t *testing.T) {
	const n = 2000
	for _, test := range []struct {
		name    string
		differs map[int]string
		most    int64 // bytes
		old     bool
	}{
		{"nothing", nil, 700, false},
		{"a few", map[int]string{3: "", 70: `"other"`, 71: `"other"`, 1999: "", 2000: ""}, 16 << 10, false},
		{"to a gateway without digests", map[int]string{3: ""}, 2 << 20, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two := newRig(t, Config{}, "w"), newRig(t, Config{}, "w")
				prime(one, "a", 10, content(n, 10, nil))
				prime(two, "b", 7, content(n, 7, test.differs))
				b := &balancer{old: test.old}
				b.now.Store(one)
				c, err := client.New("http://gateway", client.Options{Transport: b})
				if err != nil {
					t.Fatal(err)
				}
				replica := c.Replica(t.Context(), "w")
				defer replica.Close()
				if err := replica.Ready(t.Context()); err != nil || replica.Len() != n {
					t.Fatalf("%v, %d resources", err, replica.Len())
				}
				if test.old == !replica.Verified().IsZero() {
					t.Errorf("verified at %v", replica.Verified())
				}
				b.now.Store(two)
				b.bytes.Store(0)
				one.hurry()
				time.Sleep(time.Minute)
				want := n
				for _, d := range test.differs {
					if d == "" {
						want--
					}
				}
				if test.differs[2000] == "" && len(test.differs) > 1 {
					want++ // there never was one
				}
				if replica.Len() != want || replica.Revision() != "7" {
					t.Errorf("%d resources at %s, want %d at 7", replica.Len(), replica.Revision(), want)
				}
				for id, value := range holds(replica) {
					var i int
					_, _ = fmt.Sscanf(id, "key/%d", &i)
					if d, is := test.differs[i]; is && value != d {
						t.Errorf("%s is %.40s", id, value)
					}
				}
				t.Logf("%d bytes", b.bytes.Load())
				if got := b.bytes.Load(); got > test.most {
					t.Errorf("%d bytes were sent, want at most %d", got, test.most)
				}
				two.Commit("w", 8, gatewaytest.Resource("live", 8, `1`))
				time.Sleep(time.Second)
				if replica.Revision() != "8" || replica.Len() != want+1 {
					t.Errorf("%d resources at %s after a change", replica.Len(), replica.Revision())
				}
			})
		})
	}
}

// TestWatchVerifies: a loop over two watches comes back to a gateway that has started again, and is handed
// what differs, as changes.
func TestWatchVerifies(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprint("an answer is cut off: ", cut), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { watchVerifies(t, cut) })
		})
	}
}

func watchVerifies(t *testing.T, cut bool) {
	one, two := newRig(t, Config{}, "v", "w"), newRig(t, Config{}, "v", "w")
	both := func(r *rig, epoch string, revision uint64, w map[int]string) {
		primeWatch(r, "v", epoch, revision, content(100, revision, nil))
		primeWatch(r, "w", epoch, revision, content(500, revision, w))
	}
	both(one, "a", 10, nil)
	both(two, "b", 7, map[int]string{3: "", 70: `"<other>"`, 499: ""})
	b := &balancer{}
	b.now.Store(one)
	c, err := client.New("http://gateway", client.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if cut && strings.HasSuffix(r.URL.Path, "/resources") {
			cut = false
			return nil, &net.OpError{Op: "read", Err: net.ErrClosed}
		}
		return b.RoundTrip(r)
	})})
	if err != nil {
		t.Fatal(err)
	}
	state, resets, after := map[string]string{}, 0, []string(nil)
	ends := 0
	for e, err := range c.Watch(t.Context(), "v", client.And("w"), client.Verifying()) {
		if err != nil {
			t.Fatal(err)
		}
		switch key := e.Watch + " " + e.Resource.ID(); e.Type {
		case client.Reset:
			resets++
		case client.Upsert:
			state[key] = string(e.Value)
		case client.Delete:
			delete(state, key)
		}
		if b.now.Load() == two && (e.Type == client.Upsert || e.Type == client.Delete) {
			after = append(after, string(e.Data))
		}
		if e.Type != client.EndOfSnapshot {
			continue
		}
		if ends++; ends == 2 {
			b.now.Store(two)
			b.bytes.Store(0)
			one.hurry()
		}
		if b.now.Load() == two && e.Watch == "w" && e.Verify {
			break
		}
	}
	want := []string{
		`{"type":"delete","watch":"w","key":"key/3","revision":"7"}`,
		`{"type":"delete","watch":"w","key":"key/499","revision":"7"}`,
		`{"type":"upsert","watch":"w","key":"key/70","revision":"7","value":"<other>"}`,
	}
	if !slices.Equal(after, want) || resets != 2 || len(state) != 598 || state["w key/70"] != `"<other>"` {
		t.Errorf("%d resets, %d resources, and then %s", resets, len(state), after)
	}
	if n := b.bytes.Load(); n > 16<<10 {
		t.Errorf("%d bytes were sent", n)
	}
}

// mixed carries requests in turn to gateways of which some are older than digests and lists of keys are, as behind a balancer
// in the middle of an upgrade.
type mixed struct {
	targets []*rig
	old     []bool
	turn    int
	stream  io.Closer // what the newest stream is read from
}

func (m *mixed) RoundTrip(r *http.Request) (*http.Response, error) {
	at := m.turn % len(m.targets)
	m.turn++
	if m.old[at] {
		q := r.URL.Query()
		for _, parameter := range []string{"digest", "resume", "keys"} {
			if q.Has(parameter) {
				return problemAnswer(r, 400, parameter), nil
			}
		}
		if strings.Contains(r.URL.Path, "/digests/") {
			return problemAnswer(r, 404, ""), nil
		}
	}
	answer, err := m.targets[at].client.Transport.RoundTrip(r)
	if err == nil && r.URL.Path == "/v1/events" {
		m.stream = answer.Body
	}
	return answer, err
}

func problemAnswer(r *http.Request, status int, parameter string) *http.Response {
	text := fmt.Sprintf(`{"title":%q,"status":%d,"detail":"unknown parameter","parameter":%q}`, http.StatusText(status), status, parameter)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r,
	}
}

// TestMixedReplicas: in the middle of an upgrade, and of a downgrade, each stream may go to a gateway with digests or to one
// that is older. The client has the state of each, and does not ask again and again.
func TestMixedReplicas(t *testing.T) {
	for _, test := range []struct {
		name   string
		before []bool // which of the gateways are old, until the fifth round
		after  []bool
	}{
		{"the first one is old", []bool{true, false}, []bool{true, false}},
		{"the second one is old", []bool{false, true}, []bool{false, true}},
		{"an upgrade", []bool{true, true, false}, []bool{false, false, false}},
		{"a downgrade", []bool{false, false, false}, []bool{false, true, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, uint64(len(test.name))))
				m := &mixed{old: test.before}
				for range test.before {
					m.targets = append(m.targets, newRig(t, Config{}, "w"))
				}
				differs, revision, epoch := map[int]string{}, uint64(10), 0
				restore := func() {
					epoch++
					for _, r := range m.targets {
						prime(r, fmt.Sprint("e", epoch), revision, content(300, revision, differs))
					}
				}
				restore()
				c, err := client.New("http://gateway", client.Options{Transport: m})
				if err != nil {
					t.Fatal(err)
				}
				replica := c.Replica(t.Context(), "w")
				defer replica.Close()
				if err := replica.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				for round := range 12 {
					if round == 5 {
						m.old = test.after
					}
					i := random.IntN(300)
					differs[i] = fmt.Sprint(random.IntN(1000))
					revision++
					asked := m.turn
					cut := m.stream
					if random.IntN(2) == 0 { // a new order
						if random.IntN(2) == 0 {
							differs[random.IntN(300)] = ""
						}
						restore()
					} else {
						for _, r := range m.targets {
							r.Commit("w", revision, gatewaytest.Resource(fmt.Sprint("key/", i), revision, differs[i]))
						}
					}
					_ = cut.Close()
					time.Sleep(time.Minute)
					want := map[string]string{}
					for _, one := range content(300, revision, differs) {
						want[one.Key] = string(one.Value)
					}
					if got := holds(replica); !maps.Equal(got, want) || replica.Revision() != fmt.Sprint(revision) {
						t.Fatalf("round %d: %d resources at %s, want %d at %d", round, len(got), replica.Revision(), len(want), revision)
					}
					if n := m.turn - asked; n > 12 {
						t.Errorf("round %d: %d requests", round, n)
					}
				}
			})
		})
	}
}

// TestResumeByDigestGivesUp: a client that cannot read what differs shows what it had, and after two
// attempts begins again from nothing.
func TestResumeByDigestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newRig(t, Config{}, "w"), newRig(t, Config{}, "w")
		prime(one, "a", 10, content(100, 10, nil))
		prime(two, "b", 7, content(100, 7, map[int]string{3: ""}))
		b := &balancer{}
		b.now.Store(one)
		refused := 0
		c, err := client.New("http://gateway", client.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/keys") {
				refused++
				return problemAnswer(r, 404, ""), nil
			}
			return b.RoundTrip(r)
		})})
		if err != nil {
			t.Fatal(err)
		}
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		if err := replica.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.now.Store(two)
		one.hurry()
		for replica.Len() == 100 {
			time.Sleep(time.Second)
		}
		if refused != 2 || replica.Len() != 99 || replica.Revision() != "7" {
			t.Errorf("%d attempts, %d resources at %s", refused, replica.Len(), replica.Revision())
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDigestRequests: what is wrong is said.
func TestDigestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "w")
		prime(r, "a", 10, content(100, 10, nil))
		w, _ := r.Registry.Watch("w")
		state := "/v1/watches/w/digests/" + w.Snapshot().Digest().String()
		for _, test := range []struct {
			path string
			want int
			says string
		}{
			{state, 200, `"buckets":7,"table":"`},
			{state + "?prefix=key/1", 410, "no longer kept"},
			{state + "/keys?bucket=0&bucket=1&bucket=2&bucket=3&bucket=4&bucket=5&bucket=6", 200, `{"key":"key/7","revision":"10","hash":"`},
			{state + "/keys", 400, "want 1 to 100"},
			{state + "/keys?bucket=7", 400, "want a number from 0 to 6"},
			{state + "/keys?bucket=0&page_token=x", 400, "next_page_token"},
			{state + "/keys?bucket=0&page_token=0.1", 200, `"keys":[`},
			{state + "/resources?key=key/7&key=none", 200, `"resources":[{"key":"key/7","revision":"10","value":{"n":7,`},
			{state + "/resources?key=a2V5Lzc=&key_encoding=base64", 200, `{"key":"key/7"`},
			{state + "/resources", 400, "want 1 to 1000"},
			{"/v1/watches/w/digests/x", 400, "is not a digest"},
			{"/v1/watches/w/digests/1-00000000000000000000000000000000", 410, "resume=digest"},
			{"/v1/watches/none/digests/1-00000000000000000000000000000000", 404, "none"},
			{"/v1/events?watch=w&digest=2", 400, "want 1"},
			{"/v1/events?watch=w&resume=x", 400, "want digest"},
		} {
			x := r.get(test.path)
			synctest.Wait()
			if text := x.Text(); x.Response.StatusCode != test.want || !strings.Contains(text, test.says) {
				t.Errorf("%s: %d %.300s, want %d %s", test.path, x.Response.StatusCode, text, test.want, test.says)
			}
		}
	})
}

// TestBucketOfManyKeys: a bucket that has more keys than a page is read in pages, which have each key once.
func TestBucketOfManyKeys(t *testing.T) {
	const n, page = 10_500, 10_000
	synctest.Test(t, func(t *testing.T) {
		var all []stream.Resource
		for i := 0; len(all) < n; i++ { // keys that happen to be in one bucket
			if key := fmt.Sprint("k", i); digest.BucketOf(digest.OfKey(key), digest.Buckets(n)) == 0 {
				all = append(all, gatewaytest.Resource(key, 10, "1"))
			}
		}
		r := newRig(t, Config{}, "w")
		prime(r, "a", 10, all)
		w, _ := r.Registry.Watch("w")
		path := "/v1/watches/w/digests/" + w.Snapshot().Digest().String() + "/keys?bucket=0"
		found, sizes := map[string]bool{}, []int{}
		for token := ""; len(sizes) == 0 || token != ""; {
			x := r.get(path + "&page_token=" + token)
			synctest.Wait()
			var answer struct {
				Keys          []struct{ Key string }
				NextPageToken string `json:"next_page_token"`
			}
			if err := json.Unmarshal([]byte(x.Text()), &answer); err != nil || x.Response.StatusCode != 200 {
				t.Fatalf("%d, %v: %.300s", x.Response.StatusCode, err, x.Text())
			}
			for _, k := range answer.Keys {
				found[k.Key] = true
			}
			sizes, token = append(sizes, len(answer.Keys)), answer.NextPageToken
		}
		if len(found) != n || !slices.Equal(sizes, []int{page, n - page}) {
			t.Errorf("%d keys in pages of %v, want %d in pages of %d at most", len(found), sizes, n, page)
		}
	})
}

// TestDigestsOff: a gateway without digests answers as one that is older than they are. The problem names a parameter
// that was sent.
func TestDigestsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Digest: DigestOff}}, "w")
		prime(r, "a", 10, content(100, 10, nil))
		for query, parameter := range map[string]string{"digest=1": "digest", "resume=digest": "resume", "digest=1&resume=digest": "resume"} {
			x := r.get("/v1/events?watch=w&" + query)
			synctest.Wait()
			if text := x.Text(); x.Response.StatusCode != 400 || !strings.Contains(text, `"parameter":"`+parameter+`"`) {
				t.Errorf("%s: %d %s", query, x.Response.StatusCode, text)
			}
		}
		w, _ := r.Registry.Watch("w")
		state := "/v1/watches/w/digests/" + w.Snapshot().Digest().String()
		for _, path := range []string{state, state + "/keys?bucket=0", state + "/resources?key=key/7", "/v1/watches/none/digests/x"} {
			x := r.get(path)
			synctest.Wait()
			if text := x.Text(); x.Response.StatusCode != 404 || !strings.Contains(text, "stream.digest is off") {
				t.Errorf("%s: %d %s", path, x.Response.StatusCode, text)
			}
		}
		c, err := client.New("http://gateway", client.Options{Transport: r.client.Transport})
		if err != nil {
			t.Fatal(err)
		}
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		if err := replica.Ready(t.Context()); err != nil || replica.Len() != 100 || !replica.Verified().IsZero() {
			t.Errorf("%v, %d resources, verified at %v", err, replica.Len(), replica.Verified())
		}
	})
}

// TestDigestsTurnedOff: open streams have no digests from a reload on that turns them off, and those that would verify what
// they hold begin again. With another reload they have them again.
func TestDigestsTurnedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "w")
		prime(r, "a", 10, content(100, 10, nil))
		told, verifies := r.get("/v1/events?watch=w&digest=1"), r.get("/v1/events?watch=w&resume=digest")
		c, err := client.New("http://gateway", client.Options{Transport: r.client.Transport})
		if err != nil {
			t.Fatal(err)
		}
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		if err := replica.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, x := range []*gatewaytest.Exchange{told, verifies} {
			if text := x.Take(); !strings.Contains(text, `"digest":"100-`) {
				t.Errorf("a stream begins with\n%.400s", text)
			}
		}
		progress := func(revision uint64, want bool) {
			t.Helper()
			r.Commit("w", revision)
			time.Sleep(time.Minute)
			for _, x := range []*gatewaytest.Exchange{told, verifies} {
				text := x.Take()
				if strings.Contains(text, `"digest":`) != want || !strings.Contains(text, `"type":"bookmark"`) {
					t.Errorf("a digest is there: want %t, of\n%s", want, text)
				}
			}
		}
		progress(11, true)
		reloadWith(t, r.gateway, Config{StreamSettings: StreamSettings{Digest: DigestOff}})
		progress(12, false)
		prime(r, "b", 7, content(100, 7, map[int]string{3: ""}))
		for _, x := range []*gatewaytest.Exchange{told, verifies} {
			if text := x.Take(); !strings.Contains(text, `"type":"reset"`) || strings.Contains(text, "digest") || strings.Contains(text, "verify") {
				t.Errorf("in another order a stream goes on with\n%.400s", text)
			}
		}
		if replica.Len() != 99 || replica.Revision() != "7" {
			t.Errorf("the client has %d resources at %s", replica.Len(), replica.Revision())
		}
		reloadWith(t, r.gateway, Config{})
		progress(13, true)
	})
}

// TestDigestsTurnedOffWhileVerifying: a client that was asked to verify what it holds, and cannot ask for the state any more, begins
// again. The next attempt is not one more to verify.
func TestDigestsTurnedOffWhileVerifying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newRig(t, Config{}, "w"), newRig(t, Config{}, "w")
		prime(one, "a", 10, content(1000, 10, nil))
		prime(two, "b", 7, content(1000, 7, map[int]string{3: ""}))
		b := &balancer{}
		b.now.Store(one)
		c, err := client.New("http://gateway", client.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/digests/") {
				reloadWith(t, two.gateway, Config{StreamSettings: StreamSettings{Digest: DigestOff}})
			}
			return b.RoundTrip(r)
		})})
		if err != nil {
			t.Fatal(err)
		}
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		if err := replica.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.takeAsked()
		b.now.Store(two)
		one.hurry()
		time.Sleep(time.Minute)
		tried, asked := 0, b.takeAsked()
		for _, path := range asked {
			if strings.Contains(path, "/digests/") {
				tried++
			}
		}
		if replica.Len() != 999 || replica.Revision() != "7" || tried != 1 {
			t.Errorf("%d resources at %s, after %q", replica.Len(), replica.Revision(), asked)
		}
	})
}

// TestDigestsOfWatchesThatChange: a stream that asks for digests is sent one after changes, once the watch was quiet for a
// heartbeat, and each minute of a watch that never is. Other streams are not.
func TestDigestsOfWatchesThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "w")
		prime(r, "a", 10, content(10, 10, nil))
		told, plain := r.get("/v1/events?watch=w&digest=1"), r.get("/v1/events?watch=w")
		told.Take()
		plain.Take()
		w, _ := r.Registry.Watch("w")
		digest := func() string { return fmt.Sprintf(`"digest":%q`, w.Snapshot().Digest()) }
		revision := uint64(10)
		change := func() {
			revision++
			r.Commit("w", revision, gatewaytest.Resource("k", revision, fmt.Sprint(revision)))
		}
		change()
		time.Sleep(time.Minute)
		if text := told.Take(); strings.Count(text, `"type":"bookmark"`) != 1 || !strings.Contains(text, digest()) {
			t.Errorf("after a change it is sent\n%s", text)
		}
		time.Sleep(time.Minute)
		if text := told.Take(); strings.Contains(text, "bookmark") {
			t.Errorf("without a change it is sent\n%s", text)
		}
		for range 5 * 60 {
			change()
			time.Sleep(time.Second)
		}
		if text := told.Take(); strings.Count(text, `"type":"bookmark"`) != 5 || strings.Count(text, `"digest":"11-`) != 5 {
			t.Errorf("in five minutes with changes each second it is sent %d bookmarks:\n%s", strings.Count(text, "bookmark"), text)
		}
		if text := plain.Take(); strings.Contains(text, "bookmark") || strings.Contains(text, "digest") {
			t.Errorf("a stream that does not ask for digests is sent\n%s", text)
		}
	})
}

// TestRequestsAboutOneStateHoldNoProcessor: while an answer about a state is made, others about the state wait. Requests of
// other kinds are answered meanwhile.
func TestRequestsAboutOneStateHoldNoProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "w")
		prime(r, "a", 10, content(100, 10, nil))
		w, _ := r.Registry.Watch("w")
		d, _ := w.Digested(w.Snapshot().Digest())
		if err := d.TakeTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		state := "/v1/watches/w/digests/" + w.Snapshot().Digest().String()
		waiting := make([]*gatewaytest.Exchange, 2*runtime.GOMAXPROCS(0))
		var answered sync.WaitGroup
		for i := range waiting {
			answered.Go(func() { waiting[i] = r.get(state) })
		}
		synctest.Wait()
		history := r.get("/v1/watches/w/history")
		time.Sleep(time.Second)
		if text := history.Text(); history.Response == nil || history.Response.StatusCode != 200 {
			t.Errorf("the history: %.200s", text)
		}
		d.EndTurn()
		answered.Wait()
		synctest.Wait()
		for _, x := range waiting {
			if text := x.Text(); x.Response == nil || x.Response.StatusCode != 200 || !strings.Contains(text, `"table"`) {
				t.Errorf("a request that has waited: %.200s", text)
			}
		}
	})
}
