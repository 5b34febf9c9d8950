package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
		time.Sleep(5 * time.Second)
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
