package gateway

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
)

// faultyResponse panics in one of its methods, once a stream is admitted.
type faultyResponse struct {
	http.ResponseWriter
	gateway *Gateway
	at      string
}

func (f *faultyResponse) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *faultyResponse) fault(call string) {
	if f.at == call && f.gateway.admission.Count() > 0 {
		panic("a fault of the test")
	}
}

func (f *faultyResponse) Header() http.Header {
	f.fault("Header")
	return f.ResponseWriter.Header()
}

// Hijack fails if the fault comes later, in a stream that stays with net/http.
func (f *faultyResponse) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	f.fault("Hijack")
	if f.at == "Write" {
		return nil, nil, http.ErrNotSupported
	}
	return http.NewResponseController(f.ResponseWriter).Hijack()
}

func (f *faultyResponse) Write(p []byte) (int, error) {
	f.fault("Write")
	return f.ResponseWriter.Write(p)
}

// TestPanicBeforeAStreamIsCarried checks that nothing remains of a stream that was
// admitted but not yet taken by a pump.
func TestPanicBeforeAStreamIsCarried(t *testing.T) {
	for _, at := range []string{"Header", "Hijack", "Write"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testPanicBeforeAStreamIsCarried(t, at) })
		})
	}
}

func testPanicBeforeAStreamIsCarried(t *testing.T, at string) {
	r := newRig(t, Config{}, "a")
	r.Prime("a", 1)
	h, met := r.gateway.Handler(), new(atomic.Bool)
	server := r.gateway.httpServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				met.Store(true)
				panic(v)
			}
		}()
		h.ServeHTTP(&faultyResponse{w, r.gateway, at}, req)
	}))
	server.ErrorLog = log.New(io.Discard, "", 0)
	network := gatewaytest.NewNetwork()
	go server.Serve(network)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: network.Dial}}
	defer client.CloseIdleConnections()
	res, err := client.Get("http://gateway/v1/events?watch=a")
	if err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	synctest.Wait()
	if err == nil || !met.Load() {
		t.Errorf("the answer ends with %v, the fault was triggered: %t", err, met.Load())
	}
	if r.sockets != nil && r.sockets.Count() != 0 {
		t.Errorf("%d connections are still open", r.sockets.Count())
	}
	g, watch := r.gateway, r.Registry.Watches()[0]
	if n, o := g.admission.Count(), g.now.Load().introspection.Overview(&introspection.Query{Limit: 100}, nil); n != 0 || watch.Subscribers() != 0 || o.Count != 0 {
		t.Errorf("%d streams are admitted, %d are subscribed, %d are listed; want none", n, watch.Subscribers(), o.Count)
	}
}
