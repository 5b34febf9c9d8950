package gateway

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"golang.org/x/net/http2"
)

// TestAttackResets checks that listings that are reset as soon as they are requested,
// over one connection, leave the queue, and that no answer is assembled for them.
func TestAttackResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{AnswerBudget: 4 << 20}}, "a")
		r.Prime("a", 1000, pages(1<<20)...)
		busy, err := r.gateway.now.Load().unary.Answers.Bytes.Take(t.Context(), r.clientHere(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		c := r.framed()
		for range 9 {
			for range netconn.MaxStreams {
				id := c.open("GET", "/v1/watches/a/resources", true)
				if err := c.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if taken, waiting := r.gateway.now.Load().unary.Answers.Bytes.Now(); taken != 1<<20 || waiting != 0 {
				t.Fatalf("after the resets %d bytes are taken, and %d requests wait", taken, waiting)
			}
		}
		if x := r.get("/healthz"); x.StatusCode != http.StatusOK {
			t.Errorf("/healthz: %s", x.Status)
		}
		if grown := heap() - before; grown > 32<<20 {
			t.Errorf("900 listings that were reset took %d MiB", grown>>20)
		}
		busy.Release()
		if taken := r.answersTaken(); taken != 0 {
			t.Errorf("%d bytes are taken in the end", taken)
		}
	})
}

// TestSkipCancelled checks that a request that was reset before its turn is ignored.
func TestSkipCancelled(t *testing.T) {
	for proto, want := range map[int]bool{1: true, 2: false} {
		looked := false
		h := skipCancelled(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { looked = true }))
		r, err := http.NewRequest("GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.ProtoMajor = proto
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h.ServeHTTP(nil, r.WithContext(ctx))
		if looked != want {
			t.Errorf("HTTP/%d: handled: %t, want %t", proto, looked, want)
		}
	}
}
