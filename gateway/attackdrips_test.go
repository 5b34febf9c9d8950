package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"golang.org/x/net/http2"
)

// TestAttackDrips checks that a client of HTTP/2 that opens many streams and no window, or one of a byte a second for each, is
// sent no more than that, and takes little memory; another client, and another stream of its connection, are sent
// every change at once. A stream that can send nothing ends with the time-out.
func TestAttackDrips(t *testing.T) {
	for _, drip := range []uint32{0, 1} {
		t.Run(fmt.Sprint("window ", drip), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{}, "a")
				r.Prime("a", 1000, pages(1<<20)...)
				quick := r.get("/v1/events?watch=a")
				synctest.Wait()
				before := heap()
				const connections, streams, seconds = 3, 60, 60
				var slow []*framed
				for range connections {
					c := r.framed(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
					for range streams {
						c.open("GET", "/v1/events?watch=a", true)
					}
					slow = append(slow, c)
				}
				c := slow[0]
				beside := c.open("GET", "/v1/events?watch=a", true)
				if err := errors.Join(c.WriteWindowUpdate(beside, 1<<30), c.WriteWindowUpdate(0, 1<<30)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if n := r.gateway.admission.Count(); n != 2+connections*streams {
					t.Fatalf("there are %d streams", n)
				}
				got := c.received()
				for i := range seconds {
					time.Sleep(time.Second)
					for _, c := range slow {
						err := c.WritePing(true, [8]byte{}) // the answer to one of the gateway
						for id := uint32(1); drip > 0 && id < 2*streams; id += 2 {
							err = errors.Join(err, c.WriteWindowUpdate(id, drip))
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					change := strings.Repeat(fmt.Sprint(i%10), 8<<10)
					r.Commit("a", uint64(1001+i), gatewaytest.Resource("k", uint64(1001+i), `"`+change+`"`))
					if !strings.Contains(quick.Take(), change) {
						t.Fatalf("another client was not sent change %d at once", i)
					}
					now := c.received()
					if now-got < len(change) {
						t.Fatalf("another stream of the connection was not sent change %d at once", i)
					}
					got = now
				}
				if grown := heap() - before; grown > 16<<20 {
					t.Errorf("%d streams that take %d bytes a second each took %d MiB", connections*streams, drip, grown>>20)
				}
				if taken, _ := r.gateway.outputs.Now(); taken > connections*256<<10 {
					t.Errorf("they have %d KiB of what slow connections may hold", taken>>10)
				}
				for _, c := range slow[1:] {
					if n := c.received(); n > int(drip)*streams*seconds || n < int(drip)*streams {
						t.Errorf("a connection was sent %d bytes", n)
					}
				}
				if n := r.gateway.admission.Count(); drip == 0 && n != 2 {
					t.Errorf("%d streams are open that could send nothing for a minute", n-2)
				}
				for _, c := range slow {
					c.Close()
				}
				synctest.Wait()
				if taken, _ := r.gateway.outputs.Now(); taken != 0 || r.gateway.admission.Count() != 1 {
					t.Errorf("in the end there are %d streams, and %d bytes are taken", r.gateway.admission.Count(), taken)
				}
			})
		})
	}
}
