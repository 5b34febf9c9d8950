package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// The order of a shutdown: not ready, then no more connections, then goodbyes one by
// one.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second, Drain: 10 * time.Second}}, "a")
		r.Prime("a", 1)
		synctest.Wait()
		if x := r.get("/readyz"); x.StatusCode != http.StatusOK {
			t.Fatalf("before: /readyz says %s", x.Status)
		}
		streams := r.openStreams(30)
		r.stop()
		synctest.Wait()
		if x := r.get("/readyz"); x.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("/readyz says %s", x.Status)
		}
		if x := r.get("/healthz"); x.StatusCode != http.StatusOK {
			t.Errorf("/healthz says %s", x.Status)
		}
		streams = append(streams, r.openStreams(20)...)
		time.Sleep(2*time.Second - time.Millisecond)
		if n := countOver(streams); n > 0 {
			t.Errorf("%d streams ended before a load balancer could react", n)
		}
		wantListening(t, r.network)
		wantListening(t, r.rpc)
		time.Sleep(2 * time.Millisecond)
		wantNotListening(t, r.network)
		wantNotListening(t, r.rpc)
		wantListening(t, r.private)           // operators are served to the end
		const spread = 500 * time.Millisecond // for 50 streams
		time.Sleep(spread / 2)
		if n := countOver(streams); n < 10 || n > 40 {
			t.Errorf("%d of %d streams ended in half of the time", n, len(streams))
		}
		time.Sleep(spread/2 + slack())
		for i, x := range streams {
			over, err := x.Over()
			if !over || err != nil || !strings.Contains(x.Text(), `"reason":"draining"`) {
				t.Errorf("stream %d: over %t, error %v: %q", i, over, err, x.Text())
			}
		}
		wantListening(t, r.private) // the last clients have not come back elsewhere yet
		time.Sleep(3 * time.Second)
		wantNotListening(t, r.private)
	})
}

// openStreams opens streams and checks what each of them gets first.
func (r *rig) openStreams(n int) (streams []*gatewaytest.Exchange) {
	r.t.Helper()
	for range n {
		x := r.get("/v1/events?watch=a", eventStream)
		if got := x.Text(); !strings.Contains(got, "event: end_of_snapshot") {
			r.t.Fatalf("got %q", got)
		}
		streams = append(streams, x)
	}
	return streams
}

func wantListening(t *testing.T, l *gatewaytest.Network) {
	t.Helper()
	c, err := l.Dial(context.Background(), "", "")
	if err != nil {
		t.Errorf("no connections are accepted: %v", err)
		return
	}
	c.Close()
}

func wantNotListening(t *testing.T, l *gatewaytest.Network) {
	t.Helper()
	if c, err := l.Dial(context.Background(), "", ""); err == nil {
		c.Close()
		t.Error("connections are accepted")
	}
}

// A connection that waits for its next request is closed with the listener, so that a
// proxy does not send one there.
func TestIdleConnectionsAreClosedWithTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second, Drain: time.Hour, MaxAge: -1}}, "a")
		r.Prime("a", 1)
		r.get("/v1/events?watch=a")
		idle := r.dial("GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n")
		synctest.Wait()
		r.stop()
		began := time.Now()
		if _, err := io.Copy(io.Discard, idle); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("an idle connection was closed %v after the drain began, want 2s", took)
		}
	})
}

// A connection that is accepted just before the listener is closed may bring its request
// after that. An EventSource must survive the answer, and a program is told the reason.
func TestRequestAfterTheListenerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second, Drain: time.Hour, MaxAge: -1, Retry: 2 * time.Second}}, "a")
		r.Prime("a", 1)
		r.openStreams(1)
		browser, program := r.dial(""), r.dial("")
		r.stop()
		time.Sleep(2*time.Second + time.Millisecond)
		wantNotListening(t, r.network)

		io.WriteString(browser, rawGet("/v1/events?watch=a"))
		answer, err := io.ReadAll(browser) // up to the end of the connection
		if text := string(answer); err != nil || !strings.HasPrefix(text, "HTTP/1.1 200 ") || !strings.Contains(text, `"reason":"draining"`) {
			t.Errorf("an EventSource gets %q, %v", answer, err)
		}
		_, retry, _ := strings.Cut(string(answer), "retry: ")
		retry, _, _ = strings.Cut(retry, "\n")
		if n, err := strconv.Atoi(retry); err != nil || n < 1000 || n > 3000 {
			t.Errorf("it comes back after %q ms: want the usual time, 1,000 to 3,000", retry)
		}
		io.WriteString(program, "GET /v1/events?watch=a HTTP/1.1\r\nHost: gateway\r\n\r\n")
		if answer, err := io.ReadAll(program); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || !strings.Contains(string(answer), "shutting down") {
			t.Errorf("a program gets %q, %v", answer, err)
		}
	})
}

// While load balancers notice, each answer closes its connection. Else a proxy could send
// its next request over one at the moment when it is closed, and get no answer.
func TestNoKeepAliveDuringTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second}}, "a")
		r.Prime("a", 1)
		synctest.Wait()
		if x := r.get("/healthz"); x.Close {
			t.Error("a connection is closed before the drain")
		}
		r.stop()
		synctest.Wait()
		for _, path := range []string{"/healthz", "/readyz", "/v1/watches", "/nowhere", "/v1/events?watch=a&until=end_of_snapshot"} {
			x := r.get(path)
			x.Text()
			if !x.Close {
				t.Errorf("%s: %s, and the connection stays open", path, x.Status)
			}
		}
	})
}

// An operator who interrupts a gateway does not wait for load balancers.
func TestShutdownWithoutDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{DrainDelay: time.Hour, Drain: 10 * time.Second}}, "a")
		synctest.Wait()
		began := time.Now()
		r.hurry()
		err := <-r.served
		r.served <- err
		if took := time.Since(began); took != 0 || err != nil {
			t.Errorf("took %s, %v", took, err)
		}
	})
}

// In a server other than the gateway's own, connections stay open: new streams are
// refused there while the goodbyes are sent, and reconnect over another connection.
func TestDrainInAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second, Drain: 10 * time.Second}}, "a")
		r.Prime("a", 1)
		synctest.Wait()
		r.openStreams(1)
		go r.gateway.Drain()
		synctest.Wait()
		if x := r.get("/readyz"); x.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("/readyz says %s", x.Status)
		}
		r.openStreams(1)
		time.Sleep(2*time.Second + time.Millisecond)
		late := r.get("/v1/events?watch=a", eventStream)
		if got := late.Text(); late.StatusCode != http.StatusOK || !strings.Contains(got, `"reason":"draining"`) || !late.Close {
			t.Errorf("a new stream gets %d %q, close %t: want it to reconnect over another connection", late.StatusCode, got, late.Close)
		}
		time.Sleep(10*time.Second + slack())
	})
}

// Events continue until it is a stream's turn to end.
func TestStreamsContinueWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Drain: 1000 * time.Hour, MaxAge: -1}}, "a")
		r.Prime("a", 1)
		x := r.get("/v1/events?watch=a")
		r.stop()
		x.Take()
		r.Commit("a", 2, gatewaytest.Resource("k", 2, "1"))
		if got := x.Take(); !strings.Contains(got, "event: upsert") {
			t.Errorf("got %q", got)
		}
	})
}

// A client that does not read cannot delay the shutdown for long.
func TestShutdownWithAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Drain: -1, WriteTimeout: 10 * time.Second}}, "a")
		r.Prime("a", 1, gatewaytest.Resource("big", 1, `"`+strings.Repeat("x", 1<<20)+`"`))
		r.dial(rawGet("/v1/events?watch=a"))
		synctest.Wait()
		began := time.Now()
		r.stop()
		err := <-r.served
		r.served <- err // for the end of the test
		if took := time.Since(began); took > 20*time.Second || err != nil {
			t.Errorf("took %s, %v", took, err)
		}
	})
}

func TestShutdownOfAnIdleGatewayTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Drain: time.Hour}}, "a")
		synctest.Wait()
		began := time.Now()
		r.stop()
		err := <-r.served
		r.served <- err
		if took := time.Since(began); took != 0 || err != nil {
			t.Errorf("took %s, %v", took, err)
		}
	})
}

// A client that reads a snapshot slowly gets its goodbye in the middle of it, between
// two batches, and continues from there at another replica.
func TestGoodbyeInTheMiddleOfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Drain: -1, WriteTimeout: time.Minute}}, "a")
		var all []stream.Resource
		for i := range uint64(100) {
			all = append(all, gatewaytest.Resource(fmt.Sprint(i), i+1, `"`+strings.Repeat("x", 50<<10)+`"`))
		}
		r.Prime("a", 100, all...)
		slow := r.dial(rawGet("/v1/events?watch=a&format=ndjson"))
		readUntil(t, slow, "upsert")
		r.stop()
		synctest.Wait()
		id, last, upserts := "", "", 1
		for !strings.HasPrefix(last, `{"type":"goodbye"`) {
			line, err := slow.ReadString('\n')
			if err != nil {
				t.Fatalf("after %.50q: %v", last, err)
			}
			if line[0] != '{' {
				continue // the framing of HTTP/1.1
			}
			if position, ok := strings.CutPrefix(last, `{"type":"position","id":"`); ok {
				id = strings.TrimSuffix(position, "\"}\n")
			}
			if last = line; strings.HasPrefix(line, `{"type":"upsert"`) {
				upserts++
			}
		}
		if position, err := stream.ParsePosition(id); err != nil || !position.Partial() || upserts > 10 || !strings.Contains(last, `"draining"`) {
			t.Errorf("%d upserts up to %q, then %s (%v)", upserts, id, last, err)
		}
	})
}

// A request that is stuck in a source cannot delay the shutdown for long.
func TestShutdownWithARequestThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: 10 * time.Second}})
		c := streamConfig("notes", newNotebook())
		c.Writer = slowWriter{c.Writer, time.Hour}
		if _, err := r.Registry.Add(c); err != nil {
			t.Fatal(err)
		}
		stuck := r.dial("PUT /v1/watches/notes/resources/a HTTP/1.1\r\nHost: gateway\r\nContent-Length: 2\r\n\r\n{}")
		synctest.Wait()
		began := time.Now()
		r.stop()
		io.Copy(io.Discard, stuck)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("its connection was closed after %s", took)
		}
	})
}

// An HTTP/2 connection on which nothing is requested gets its GOAWAY too, and its stream
// ends with a goodbye.
func TestShutdownOfAQuietSharedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newServedRig(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second, Drain: time.Hour, MaxAge: -1}}, "a")
		r.Prime("a", 1)
		synctest.Wait()
		stream := r.openStreams(1)[0]
		r.stop()
		time.Sleep(2*time.Second + firstRequests + time.Millisecond)
		if response, err := r.rig.client.Get("http://gateway/healthz"); err == nil {
			response.Body.Close()
			t.Errorf("HTTP/2 answers %s, want another connection to be tried", response.Status)
		}
		if over, err := stream.Over(); !over || err != nil || !strings.Contains(stream.Text(), `"reason":"draining"`) {
			t.Errorf("the stream: over %t, error %v: %q", over, err, stream.Text())
		}
	})
}

// HTTP/2 and gRPC connections get a GOAWAY, and carry their streams until those
// get their goodbye.
func TestShutdownOfSharedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newServedRig(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second, Drain: 10 * time.Second}}, "a")
		r.Prime("a", 1)
		synctest.Wait()
		overHTTP2 := r.openStreams(1)[0]
		overGRPC := r.watchList(&api.WatchListRequest{Watch: "a"})
		overGRPC.take()
		r.stop()
		time.Sleep(time.Second)
		r.openStreams(1)
		late := r.watchList(&api.WatchListRequest{Watch: "a"})
		if got := late.take(); !strings.Contains(got, "end_of_snapshot") {
			t.Errorf("before the listeners are closed, a call gets %q", got)
		}

		time.Sleep(time.Second + time.Millisecond)
		if response, err := r.rig.client.Get("http://gateway/healthz"); err == nil {
			response.Body.Close()
			t.Errorf("HTTP/2 answers %s, want the connection to be refused", response.Status)
		}
		if _, err := r.client.GetWatch(t.Context(), &api.GetWatchRequest{Watch: "a"}); status.Code(err) != codes.Unavailable {
			t.Errorf("gRPC answers %v, want the connection to be refused", err)
		}

		time.Sleep(10*time.Second + slack())
		if over, err := overHTTP2.Over(); !over || err != nil || !strings.Contains(overHTTP2.Text(), `"reason":"draining"`) {
			t.Errorf("HTTP/2: over %t, %v: %q", over, err, overHTTP2.Text())
		}
		overGRPC.want(t, "goodbye draining")
		overGRPC.wantEnd(t, codes.OK)
	})
}

// TestDrainIsSoonOver: without streams a gateway stops once its listeners are closed. With few,
// it stops when their clients have come back elsewhere, and does not wait for the time that
// many would take.
func TestDrainIsSoonOver(t *testing.T) {
	for streams, most := range map[int]time.Duration{0: 0, 1: 3*time.Second + 10*time.Millisecond, 30: 3*time.Second + 300*time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second, Drain: 10 * time.Second}}, "a")
			r.Prime("a", 1)
			synctest.Wait()
			r.openStreams(streams)
			r.stop()
			time.Sleep(2*time.Second + time.Millisecond) // the listeners are closed
			if streams > 0 {
				wantListening(t, r.private)
			}
			time.Sleep(most + firstRequests)
			synctest.Wait()
			wantNotListening(t, r.private)
		})
	}
}
