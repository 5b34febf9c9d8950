package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// The order of a shutdown: not ready, new streams refused, the open ones sent
// away one by one, then the door is shut.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Drain: 10 * time.Second}, "a")
		r.prime("a", 1)
		synctest.Wait()
		if x := r.get("/readyz"); x.StatusCode != http.StatusOK {
			t.Fatalf("before: /readyz says %s", x.Status)
		}
		var streams []*exchange
		for range 50 {
			streams = append(streams, r.get("/v1/events?watch=a"))
		}
		synctest.Wait()
		r.stop()
		synctest.Wait()
		if x := r.get("/readyz"); x.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("/readyz says %s", x.Status)
		}
		if x := r.get("/healthz"); x.StatusCode != http.StatusOK {
			t.Errorf("/healthz says %s", x.Status)
		}
		late := r.get("/v1/events?watch=a", eventStream)
		if got := late.text(); !strings.Contains(got, `"reason":"overloaded"`) || !late.Close {
			t.Errorf("a new stream gets %q, close %t: want it to come back over another connection", got, late.Close)
		}
		time.Sleep(5 * time.Second)
		if n := countOver(streams); n < 10 || n > 40 {
			t.Errorf("%d of %d streams left in half of the time", n, len(streams))
		}
		time.Sleep(5*time.Second + slack())
		for i, x := range streams {
			over, err := x.over()
			if !over || err != nil || !strings.Contains(x.text(), `"reason":"draining"`) {
				t.Errorf("stream %d: over %t, error %v: %q", i, over, err, x.text())
			}
		}
		if _, err := r.network.dial(context.Background(), "", ""); err == nil {
			t.Error("connections are accepted after the shutdown")
		}
	})
}

// Events go on until it is a stream's turn to leave.
func TestStreamsGoOnWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Drain: 1000 * time.Hour, MaxAge: -1}, "a")
		r.prime("a", 1)
		x := r.get("/v1/events?watch=a")
		r.stop()
		x.take()
		r.commit("a", 2, resource("k", 2, "1"))
		if got := x.take(); !strings.Contains(got, "event: upsert") {
			t.Errorf("got %q", got)
		}
	})
}

// A client that does not read cannot hold the shutdown up for long.
func TestShutdownWithAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Drain: -1, WriteTimeout: 10 * time.Second}, "a")
		r.prime("a", 1, resource("big", 1, `"`+strings.Repeat("x", 1<<20)+`"`))
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
		r := newRig(t, Config{Drain: time.Hour}, "a")
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

// A client that reads a snapshot slowly is sent away in its middle, between two
// batches, and goes on from there at another replica.
func TestGoodbyeInTheMiddleOfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Drain: -1, WriteTimeout: time.Minute}, "a")
		var all []stream.Resource
		for i := range uint64(100) {
			all = append(all, resource(fmt.Sprint(i), i+1, `"`+strings.Repeat("x", 50<<10)+`"`))
		}
		r.prime("a", 100, all...)
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

// A request that is stuck in a source cannot hold the shutdown up for long.
func TestShutdownWithARequestThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{WriteTimeout: 10 * time.Second})
		c := streamConfig("notes", newNotebook())
		c.Writer = slowWriter{c.Writer, time.Hour}
		if _, err := r.registry.Add(c); err != nil {
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
