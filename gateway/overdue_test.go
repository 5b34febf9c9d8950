package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/stream"
)

// requests holds a request for each way to carry a stream over the in-memory network.
var requests = map[string]string{
	"HTTP/1.1": rawGet("/v1/events?watch=a"),
	"HTTP/1.0": "GET /v1/events?watch=a HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n",
}

// TestAttackUnreadStreamOutlivesItsAge checks that a client that reads nothing, or a
// byte now and then, gets no goodbye and is cut off anyway.
func TestAttackUnreadStreamOutlivesItsAge(t *testing.T) {
	for protocol, request := range requests {
		for name, every := range map[string]time.Duration{"nothing": 0, "a byte a second": time.Second} {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const age = time.Minute
					r := newRig(t, Config{StreamSettings: StreamSettings{MaxAge: age, WriteTimeout: 10 * time.Minute}}, "a")
					r.Prime("a", 1, gatewaytest.LargeOnes(100, 1)...)
					c := r.dial(request)
					readBytes(c, every)
					time.Sleep(age * 9 / 10)
					synctest.Wait()
					if n := r.gateway.admission.Count(); n != 1 {
						t.Fatalf("%d streams before it is due", n)
					}
					time.Sleep(age/5 + session.FarewellPatience + 2*netconn.CheckEvery)
					wantGone(t, r, stream.GoodbyeMaxAge)
					time.Sleep(every) // the client notices
				})
			})
		}
	}
}

// TestAttackUnreadStreamHoldsUpTheDrain checks that the gateway ends in time.
func TestAttackUnreadStreamHoldsUpTheDrain(t *testing.T) {
	for protocol, request := range requests {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const drain, timeout = 10 * time.Second, 10 * time.Minute
				r := newRig(t, Config{StreamSettings: StreamSettings{Drain: drain, MaxAge: -1, WriteTimeout: timeout}}, "a")
				r.Prime("a", 1, gatewaytest.LargeOnes(100, 1)...)
				r.dial(request)
				time.Sleep(time.Second)
				r.stop()
				began := time.Now()
				<-r.gateway.admission.Draining
				if err := <-r.served; err != nil {
					t.Error(err)
				}
				wantGone(t, r, stream.GoodbyeDraining)
				if took := time.Since(began); took > drain+session.FarewellPatience+2*netconn.CheckEvery {
					t.Errorf("the shutdown took %s", took)
				}
				r.served <- nil // for the end of the test
			})
		})
	}
}

// readBytes reads one byte at each interval; never if every is 0.
func readBytes(c *rawConn, every time.Duration) {
	if every == 0 {
		return
	}
	go func() {
		for p := make([]byte, 1); ; time.Sleep(every) {
			if _, err := c.Conn.Read(p); err != nil {
				return
			}
		}
	}()
}

func wantGone(t *testing.T, r *rig, why stream.GoodbyeReason) {
	t.Helper()
	synctest.Wait()
	o := r.gateway.now.Load().introspection.Overview(&introspection.Query{Filter: introspection.Filter{Watch: "a"}, Limit: 10}, nil)
	if n := r.gateway.admission.Count(); n != 0 || o.LeftReasons[introspection.DepartureReason(why)] != 1 || o.Count != 0 {
		t.Errorf("%d streams are left, %d are listed; they ended for %v", n, o.Count, o.LeftReasons)
	}
}
