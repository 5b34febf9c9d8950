package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/stream"
)

// onShards skips a test when the other pump is tested.
func onShards(t testing.TB) {
	t.Helper()
	if pumpUnderTest() != PumpShards {
		t.Skip("of the shard pump alone")
	}
}

// rawStream is a client that writes HTTP itself, over TCP.
type rawStream struct {
	*net.TCPConn
	r *bufio.Reader
}

// openRaw sends a request, with headers that end with an empty line, and reads up to
// the end of the snapshot.
func openRaw(t *testing.T, r *realGateway, request string) *rawStream {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	s := &rawStream{TCPConn: c.(*net.TCPConn), r: bufio.NewReaderSize(c, 2<<20)}
	if err := s.until("end_of_snapshot"); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *rawStream) until(what string) error {
	for {
		line, err := s.r.ReadString('\n')
		if err != nil || strings.Contains(line, what) {
			return err
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestMembersCostNoGoroutine checks that members run no goroutine, and free their
// references.
func TestMembersCostNoGoroutine(t *testing.T) {
	onShards(t)
	r := newRealGateway(t, Config{}, nil)
	first := openRaw(t, r, rawGet("/v1/events?watch=a"))
	waitIdle()
	before, open := gatewaytest.GoroutinesIn(gatewaytest.GatewayCode), descriptors(t)
	const n = 200
	streams := []*rawStream{first}
	for range n {
		streams = append(streams, openRaw(t, r, rawGet("/v1/events?watch=a")))
	}
	waitIdle()
	if more := gatewaytest.GoroutinesIn(gatewaytest.GatewayCode) - before; more > n/4 { // shards and watch wakers that were not needed before
		t.Errorf("%d streams cost %d goroutines", n, more)
	}
	r.write("k", 2, `"news"`)
	for _, s := range streams {
		if err := s.until(`"revision":"2","value":"news"`); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.watch.Subscribers(); got != n+1 {
		t.Errorf("%d subscribers are counted of %d", got, n+1)
	}
	for _, s := range streams[1:] {
		s.Close()
	}
	r.waitFor(t, 1)
	await(t, func() (bool, string) {
		more := descriptors(t) - open
		return more <= 0, fmt.Sprintf("%d descriptors are still open", more)
	})
}

// waitIdle waits until the handlers of hijacked connections have returned.
func waitIdle() { gatewaytest.WaitGoroutines("net/http.(*conn", 0) }

// TestStalledMember checks that a stalled member does not affect the others, is
// notified that it is catching up, and rejoins its group.
func TestStalledMember(t *testing.T) {
	onShards(t)
	r := newRealGateway(t, Config{StreamSettings: StreamSettings{WriteTimeout: time.Minute}}, nil)
	stalled, reader := openRaw(t, r, rawGet("/v1/events?watch=a")), openRaw(t, r, rawGet("/v1/events?watch=a"))
	value := `"` + strings.Repeat("x", 1<<20) + `"`
	const last = 60
	for i := uint64(2); i <= last; i++ {
		r.write("k", i, value)
		if err := reader.until(fmt.Sprintf(`"revision":"%d"`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stalled.until("catching_up"); err != nil {
		t.Fatal(err)
	}
	if err := stalled.until(fmt.Sprintf(`"revision":"%d"`, last)); err != nil {
		t.Fatal(err)
	}
	// It is a member again.
	r.write("k", last+1, `"small"`)
	for _, s := range []*rawStream{stalled, reader} {
		if err := s.until(`"small"`); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBytesAfterRequest checks that bytes that a client sends after its request,
// even another request, neither disturb the stream nor are answered, and that the
// stream ends cleanly.
func TestBytesAfterRequest(t *testing.T) {
	onShards(t)
	for name, behind := range map[string]string{
		"a request": "GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n",
		"much":      strings.Repeat("nonsense", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealGateway(t, Config{}, nil)
			s := openRaw(t, r, rawGet("/v1/events?watch=a")+behind)
			if _, err := io.WriteString(s, behind); err != nil {
				t.Fatal(err)
			}
			r.write("k", 2, `"news"`)
			if err := s.until(`"news"`); err != nil {
				t.Fatal(err)
			}
			r.registry.Remove("a")
			rest, err := io.ReadAll(s.r)
			if err != nil || !strings.Contains(string(rest), "watch_removed") || !strings.Contains(string(rest), "\r\n0\r\n\r\n") {
				t.Errorf("%q, %v", rest, err)
			}
			if strings.Count(string(rest), "HTTP/1.1") > 0 {
				t.Errorf("bytes after the request were answered: %q", rest)
			}
		})
	}
}

// TestOldClients checks that HTTP/1.0 clients, which do not support chunked
// bodies, get none.
func TestOldClients(t *testing.T) {
	r := newRealGateway(t, Config{}, nil)
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /v1/events?watch=a&until=end_of_snapshot HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(all), "}\n\n") || strings.Contains(string(all), "chunked") {
		t.Errorf("%q, %v", all, err)
	}
}

// TestConnectionIsClosedAfterTheStream checks that the response head announces it,
// since the shard pump answers nothing more.
func TestConnectionIsClosedAfterTheStream(t *testing.T) {
	onShards(t)
	r := newRealGateway(t, Config{}, nil)
	res, err := http.Get("http://" + r.address + "/v1/events?watch=a&until=end_of_snapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err != nil || !res.Close || res.Header.Get("Date") == "" || len(res.TransferEncoding) != 1 {
		t.Errorf("%v, %+v", err, res)
	}
}

// TestNewEpochOfMembers checks that each member gets the snapshot at its own pace.
func TestNewEpochOfMembers(t *testing.T) {
	r := newRealGateway(t, Config{}, nil)
	var streams []*rawStream
	for range 20 {
		streams = append(streams, openRaw(t, r, rawGet("/v1/events?watch=a")))
	}
	value := `"` + strings.Repeat("y", 1<<19) + `"`
	r.source.Steps <- func(s stream.Sink) error {
		err := s.Reset("e2")
		for i := range 8 {
			err = errors.Join(err, s.Upsert(gatewaytest.Resource(fmt.Sprint("k", i), 1, value)))
		}
		return errors.Join(err, s.Commit(1))
	}
	for i, s := range streams {
		if i == 7 {
			s.Close() // one disconnects in the middle of it
			continue
		}
		if err := errors.Join(s.until("epoch_changed"), s.until("end_of_snapshot")); err != nil {
			t.Fatal(err)
		}
	}
	r.waitFor(t, len(streams)-1)
	r.write("k0", 2, `"news"`)
	for i, s := range streams {
		if i == 7 {
			continue
		}
		if err := s.until(`"news"`); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChurn checks that streams that begin and end all the time, in every way,
// leak nothing, and that those that stay open miss nothing.
func TestChurn(t *testing.T) {
	r := newRealGateway(t, Config{StreamSettings: StreamSettings{MaxAge: 200 * time.Millisecond}}, nil)
	open := descriptors(t)
	stop := make(chan struct{})
	var others, clients sync.WaitGroup
	others.Go(func() {
		for i := uint64(2); !session.Closed(stop); i++ {
			r.write(fmt.Sprint("k", i%10), i, fmt.Sprint(i))
		}
	})
	others.Go(func() {
		for !session.Closed(stop) {
			checkListed(t, r.gateway.now.Load().introspection.Overview(&introspection.Query{Filter: introspection.Filter{Watch: "a"}, Limit: 10}, nil))
			<-time.After(time.Millisecond)
		}
	})
	const several = 16
	visits := gatewaytest.Length(32, 8) // by each client, a quarter of them in each way
	for c := range several {
		clients.Go(func() {
			for n := range visits {
				readOrHangUp(t, r, (c+n)%4)
			}
		})
	}
	clients.Wait()
	close(stop)
	others.Wait()
	r.waitFor(t, 0)
	await(t, func() (bool, string) {
		more := descriptors(t) - open
		return more <= 2, fmt.Sprintf("%d descriptors are still open", more) // the listener's may be in use
	})
	o := r.gateway.now.Load().introspection.Overview(&introspection.Query{Filter: introspection.Filter{Watch: "a"}, Limit: 10}, nil)
	if kept := r.gateway.subscribers; o.Count != 0 || len(kept.Standalone()) > 0 || kept.Clients.Keys() != 0 {
		t.Errorf("%d are listed, %d are standalone, %d clients are remembered", o.Count, len(kept.Standalone()), kept.Clients.Keys())
	}
	if most := uint64(several * visits / 5); o.LeftReasons["max_age"] < most || o.LeftReasons["client_closed"] < most || o.LeftReasons["aborted"] != 0 {
		t.Errorf("they ended for %v", o.LeftReasons)
	}
}

// checkListed checks properties of every list.
func checkListed(t *testing.T, o introspection.Overview) {
	if len(o.Subscribers) > 10 || o.Count < len(o.Subscribers) || len(o.Left) > introspection.DeparturesKept {
		t.Errorf("%d listed of %d, %d left", len(o.Subscribers), o.Count, len(o.Left))
	}
	for _, s := range o.Subscribers {
		if !strings.HasPrefix(s.Address, "127.0.0.1:") || s.Events > 1e6 || s.Bytes > 1e9 || s.Skipped > 1e6 || s.Lag > 1e6 {
			t.Errorf("%+v", s)
		}
	}
}

// readOrHangUp reads a stream to its end, or hangs up at once, in the middle, or
// with a reset.
func readOrHangUp(t *testing.T, r *realGateway, how int) {
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /v1/events?watch=a HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n"); err != nil {
		t.Error(err)
		return
	}
	switch how {
	case 0:
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Error(err)
			return
		}
		all, err := io.ReadAll(res.Body) // fails without a last chunk
		if err != nil || !strings.Contains(string(all), "max_age") {
			t.Errorf("%v; it ends with %.200q", err, all[max(0, len(all)-200):])
		}
		checkRevisions(t, string(all))
	case 1:
	case 2:
		_ = readUpTo(c, "end_of_snapshot")
	case 3:
		_ = readUpTo(c, "upsert")
		_ = c.(*net.TCPConn).SetLinger(0)
	}
}

// checkRevisions checks that after the snapshot each revision follows the one before,
// or a gap is announced.
func checkRevisions(t *testing.T, all string) {
	_, live, _ := strings.Cut(all, "end_of_snapshot\ndata")
	if strings.Contains(live, "catching_up") {
		return
	}
	last := uint64(0)
	for _, part := range strings.Split(live, `"key":"k`)[1:] {
		var key, revision uint64
		if _, err := fmt.Sscanf(part, `%d","revision":"%d"`, &key, &revision); err != nil {
			t.Errorf("%.80q: %v", part, err)
		}
		if last > 0 && revision != last+1 {
			t.Errorf("after %d comes %d", last, revision)
		}
		last = revision
	}
}
