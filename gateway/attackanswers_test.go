package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/stream"
	"golang.org/x/net/http2"
)

// pages returns resources for a page of that many bytes.
func pages(bytes int) (out []stream.Resource) {
	const value = 8 << 10
	for i := range bytes / value {
		out = append(out, gatewaytest.Resource(fmt.Sprintf("k%05d", i), uint64(i+1), `"`+strings.Repeat("x", value)+`"`))
	}
	return out
}

// framed opens an HTTP/2 connection.
func (r *rig) framed(settings ...http2.Setting) *framed {
	r.t.Helper()
	c, err := r.network.Dial(context.Background(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	return newFramed(r.t, c, settings...)
}

// clientHere returns the client that all requests of a rig count for.
func (r *rig) clientHere() limits.Client {
	return limits.ClientOf(limits.PeerAddress((&gatewaytest.Conn{}).RemoteAddr().String()).Addr())
}

// answersTaken returns how much of the answer budget is taken.
func (r *rig) answersTaken() int64 {
	synctest.Wait()
	taken, _ := r.gateway.now.Load().unary.Answers.Bytes.Now()
	return taken
}

// TestAttackUnreadAnswers requests listings over one HTTP/2 connection whose client
// never opens the window.
func TestAttackUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const page = 1 << 20
		r := newRig(t, Config{HTTPSettings: HTTPSettings{AnswerBudget: 8 * page}, StreamSettings: StreamSettings{WriteTimeout: 5 * time.Second}}, "a")
		r.Prime("a", 1000, pages(page)...)
		before := heap()
		c := r.framed(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for range netconn.MaxStreams {
			c.open("GET", "/v1/watches/a/resources", true)
		}
		if taken := r.answersTaken(); taken < page || taken > 2*page {
			t.Errorf("unread answers have %d KiB, of %d at most", taken>>10, 2*page>>10)
		}
		if grown := heap() - before; grown > 64<<20 {
			t.Errorf("%d unread listings took %d MiB", netconn.MaxStreams, grown>>20)
		}
		time.Sleep(limits.AnswerWait + time.Second)
		if taken := r.answersTaken(); taken > 2*page {
			t.Errorf("later, unread answers have %d KiB", taken>>10)
		}
		time.Sleep(limits.AnswerWait + 6*time.Second)
		if taken := r.answersTaken(); taken != 0 {
			t.Errorf("in the end, answers have %d KiB", taken>>10)
		}
		reset := 0
		for id := uint32(1); id < c.next; id += 2 {
			if ended, _ := c.hasEnded(id); ended {
				reset++
			}
		}
		if reset == 0 || counter(t, r.gateway, metrics.Namespace+"budget_refusals_total", "budget", "answers") == 0 {
			t.Errorf("%d answers were ended, and none refused", reset)
		}
	})
}

// TestAttackSlowAnswers has clients of HTTP/1.1 read a little now and then.
func TestAttackSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const page = 1 << 20
		r := newRig(t, Config{HTTPSettings: HTTPSettings{AnswerBudget: 8 * page}}, "a")
		r.Prime("a", 1000, pages(page)...)
		before, began := heap(), time.Now()
		var ended []<-chan struct{}
		for range 100 {
			c := r.dial("GET /v1/watches/a/resources HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			done := make(chan struct{})
			ended = append(ended, done)
			go func() {
				defer close(done)
				for p := make([]byte, 4<<10); ; time.Sleep(4 * time.Second) {
					if _, err := io.ReadFull(c.Conn, p); err != nil {
						return
					}
				}
			}()
		}
		if taken := r.answersTaken(); taken < page || taken > 2*page {
			t.Errorf("answers that are read slowly have %d KiB, of %d at most", taken>>10, 2*page>>10)
		}
		if grown := heap() - before; grown > 64<<20 {
			t.Errorf("100 listings that are read slowly took %d MiB", grown>>20)
		}
		for _, done := range ended {
			<-done
		}
		if took := time.Since(began); took > 2*netconn.RateWindow {
			t.Errorf("the last of them ended after %s", took)
		}
		if taken := r.answersTaken(); taken != 0 {
			t.Errorf("in the end, answers have %d KiB", taken>>10)
		}
	})
}

// TestAttackAbortedListings checks that clients that disconnect in the middle of an
// answer are logged at debug level only.
func TestAttackAbortedListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := &errorLog{}
		r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}, "a")
		r.Prime("a", 1000, pages(1<<20)...)
		for range 10 {
			c := r.dial(rawGet("/v1/watches/a/resources"))
			if _, err := io.CopyN(io.Discard, c.Conn, 100); err != nil {
				t.Fatal(err)
			}
			c.Close()
			synctest.Wait()
		}
		if got := strings.Count(logged.String(), `level=DEBUG msg="answer not taken" method=GET path=/v1/watches/a/resources`); got != 10 {
			t.Errorf("%d lines, want 10:\n%s", got, logged)
		}
		if strings.Contains(logged.String(), "level=ERROR") || strings.Contains(grpcErrors.String(), "Failed to write response") {
			t.Errorf("it is logged above debug level:\n%s\n%s", logged, &grpcErrors)
		}
	})
}

// TestSlowButSteadyAnswer checks that a client at twice the minimum rate gets the
// whole answer.
func TestSlowButSteadyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const page = 1 << 20
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1000, pages(page)...)
		for _, path := range []string{"/v1/watches/a/resources", "/v1/watches/a/changes"} {
			c := r.dial(rawGet(path))
			res, err := http.ReadResponse(c.Reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			n := int64(0)
			for err == nil {
				var m int64
				m, err = io.CopyN(io.Discard, res.Body, 8<<10)
				n += m
				time.Sleep(time.Second)
			}
			if err != io.EOF || n < page {
				t.Errorf("%s: %d bytes, then %v", path, n, err)
			}
			c.Close()
		}
		if taken := r.answersTaken(); taken != 0 {
			t.Errorf("answers have %d KiB", taken>>10)
		}
	})
}

// TestAttackSlowPoll checks that a long poll that is read slowly is cut off, and does
// not look complete.
func TestAttackSlowPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1000, pages(1<<20)...)
		c := r.dial(rawGet("/v1/watches/a/changes"))
		res, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for p := make([]byte, 4<<10); err == nil; time.Sleep(4 * time.Second) {
			_, err = io.ReadFull(res.Body, p)
		}
		if took := time.Since(began); err == io.EOF || took > 2*netconn.RateWindow {
			t.Errorf("after %s: %v", took, err)
		}
		if taken := r.answersTaken(); taken != 0 {
			t.Errorf("answers have %d KiB", taken>>10)
		}
	})
}

// TestAnswerBudgetIsReleased checks that the budget is released however a request
// ends.
func TestAnswerBudgetIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{PrimeWait: time.Second}}, "a", "silent")
		r.Prime("a", 1000, pages(64<<10)...)
		for _, path := range []string{
			"/v1/watches", "/v1/watches/a", "/v1/watches/a/resources", "/v1/watches/a/resources?page_token=x",
			"/v1/watches/a/resources/k00000", "/v1/watches/a/resources/none", "/v1/watches/silent/resources",
			"/v1/watches/a/changes", "/v1/watches/a/changes?wait=0s",
		} {
			r.get(path).Text()
			if taken, waiting := r.gateway.now.Load().unary.Answers.Bytes.Now(); taken != 0 || waiting != 0 {
				t.Errorf("%s: %d bytes of the budget are still taken, %d requests wait", path, taken, waiting)
			}
		}
	})
}

// TestAttackFilters checks that filters of single resources, each of which may take long for
// a large value, are evaluated one at a time for each client, and those of cancelled
// requests not at all.
func TestAttackFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1000, pages(64<<10)...)
		busy, err := r.gateway.now.Load().unary.Answers.Scans.Take(t.Context(), r.clientHere(), 1)
		if err != nil {
			t.Fatal(err)
		}
		c := r.framed()
		for i := range netconn.MaxStreams {
			c.open("GET", fmt.Sprintf("/v1/watches/a/resources/k00000?filter=revision!=%d", i), true)
		}
		synctest.Wait()
		if _, waiting := r.gateway.now.Load().unary.Answers.Scans.Now(); waiting == 0 {
			t.Error("a second filter is evaluated")
		}
		for id := uint32(1); id < c.next; id += 2 {
			if err := c.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if _, waiting := r.gateway.now.Load().unary.Answers.Scans.Now(); waiting != 0 {
			t.Errorf("%d requests that were cancelled still wait", waiting)
		}
		late := c.open("GET", "/v1/watches/a/resources/k00000?filter=true", true)
		time.Sleep(limits.AnswerWait + time.Second)
		synctest.Wait()
		if got := c.field(late, ":status"); got != "503" {
			t.Errorf("a request that waited for %s: status %q", limits.AnswerWait, got)
		}
		busy.Release()
		if x := r.get("/v1/watches/a/resources/k00000?filter=true"); x.StatusCode != 200 {
			t.Errorf("a request afterwards: %s", x.Text())
		}
	})
}
