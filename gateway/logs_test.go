package gateway

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// logTo returns a logger to a text, from a level on.
func logTo(to *lockedText, least slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: least}))
}

// linesWith returns the lines of a log that have all parts.
func linesWith(logged *lockedText, parts ...string) (found []string) {
next:
	for line := range strings.Lines(logged.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// The end of a stream is logged with its client, reason, duration and bytes, and only that of
// a client that was cut off above level debug.
func TestStreamEndsAreLogged(t *testing.T) {
	for _, c := range []struct {
		reason string
		level  slog.Level
		leave  func(r *rig)
	}{
		{"client_closed", slog.LevelDebug, func(r *rig) {
			x := r.get("/v1/events?watch=big", "User-Agent: wall")
			x.Text()
			time.Sleep(3 * time.Second)
			x.Cancel()
		}},
		{"write_timeout", slog.LevelInfo, func(r *rig) {
			readUntil(r.t, r.dial(rawGet("/v1/events?watch=big")), "event: upsert")
			time.Sleep(15 * time.Second)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			logged := &lockedText{}
			r := newRig(t, Config{Logger: logTo(logged, slog.LevelDebug)}, "big")
			r.Prime("big", 1, gatewaytest.Resource("big", 1, `"`+strings.Repeat("x", 1<<20)+`"`))
			c.leave(r)
			synctest.Wait()
			time.Sleep(slack())
			lines := linesWith(logged, `msg="stream ended"`, "level="+c.level.String(), "client=203.0.113.1", "reason="+c.reason, "duration=", "bytes=", "watches=[big]")
			if len(lines) != 1 {
				t.Fatalf("%s: %d lines, want 1:\n%s", c.reason, len(lines), logged.String())
			}
			if c.reason == "client_closed" && (!strings.Contains(lines[0], "duration=3") || !strings.Contains(lines[0], "user_agent=wall") || strings.Contains(lines[0], "bytes=0 ")) {
				t.Errorf("got %s", lines[0])
			}
		})
	}
}

// The end of a drain is logged, with how many streams were ended.
func TestDrainedIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := &lockedText{}
		r := newRig(t, Config{StreamSettings: StreamSettings{Drain: 4 * time.Second}, Logger: logTo(logged, slog.LevelInfo)}, "a")
		r.Prime("a", 1)
		r.openStreams(5)
		r.stop()
		time.Sleep(time.Minute)
		if lines := linesWith(logged, "level=INFO msg=drained", "streams=5 ended=5 left=0 took="); len(lines) != 1 {
			t.Errorf("want one line:\n%s", logged)
		}
		if text := logged.String(); !strings.Contains(text, "msg=draining reason=") || strings.Index(text, "msg=draining") > strings.Index(text, "msg=drained") {
			t.Errorf("the beginning is not logged before the end:\n%s", text)
		}
	})
}

// Hosts, origins and credentials that are refused are logged with the client, a limited number
// of times, and without secrets.
func TestRefusalsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := &lockedText{}
		guard := newGuard(t)
		r := newGRPCRig(t, Config{
			Access: guard.access(wholeWatches("a")), Logger: logTo(logged, slog.LevelInfo),
			HTTPSettings: HTTPSettings{AllowedOrigins: []string{"https://app.example.com"}},
		}, "a")
		r.Prime("a", 1)
		for range 100 {
			refuseAll(r.rig)
		}
		secret := "wt_secretsecretsecret"
		r.get("/v1/events?watch=a&access_token="+secret, "Authorization: Bearer "+secret).Text()
		for kind, parts := range map[string][]string{
			"host":       {"msg=\"host refused", "host=evil.example", "client=203.0.113.1"},
			"origin":     {"msg=\"origin refused", "origin=https://evil.example", "client=203.0.113.1"},
			"credential": {"msg=\"credential refused", "client=203.0.113.1"},
		} {
			if n := len(linesWith(logged, append(parts, "level=WARN")...)); n != 30 {
				t.Errorf("%s: %d lines, want the 30 of a minute:\n%.1500s", kind, n, logged.String())
			}
		}
		if n := len(linesWith(logged, "reason=invalid_token status=401")); n == 0 {
			t.Error("no line says that the token is invalid")
		}
		time.Sleep(time.Minute)
		refuseAll(r.rig)
		if n := len(linesWith(logged, "lines_left_out=")); n != 3 {
			t.Errorf("%d lines say how many were left out, want one of each kind", n)
		}
		if strings.Contains(logged.String(), "secret") {
			t.Errorf("a secret is in the log:\n%s", logged)
		}
	})
}

// refuseAll makes a request for a foreign host, one of a foreign page, and one with a token
// that nobody has issued.
func refuseAll(r *rig) {
	x := r.get("/v1/watches", "Authorization: Bearer wt_secretsecretsecret", "Origin: https://evil.example")
	x.Text()
	c := r.dial("GET /v1/watches HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
	if answer, err := http.ReadResponse(c.Reader, nil); err != nil || answer.StatusCode != http.StatusMisdirectedRequest {
		r.t.Errorf("the answer to a foreign host: %v, %v", answer, err)
	}
	c.Close()
}

// Foreign hosts and unknown tokens over gRPC are logged too.
func TestRefusalsOfCallsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := &lockedText{}
		r := newGRPCRig(t, Config{Access: newGuard(t).access(wholeWatches("a")), Logger: logTo(logged, slog.LevelInfo)}, "a")
		foreign := dialGRPC(t, r.gateway, grpc.WithAuthority("evil.example"))
		if _, err := foreign.ListWatches(t.Context(), &api.ListWatchesRequest{}); err == nil {
			t.Error("a foreign host is served")
		}
		if n := len(linesWith(logged, "msg=\"host refused", "host=evil.example")); n != 1 {
			t.Errorf("%d lines, want 1:\n%s", n, logged)
		}
		unknown := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer wt_secretsecretsecret")
		if _, err := r.client.ListWatches(unknown, &api.ListWatchesRequest{}); err == nil {
			t.Error("a token that nobody has issued is accepted")
		}
		if n := len(linesWith(logged, "msg=\"credential refused", "reason=invalid_token", "client=203.0.113.1")); n != 1 || strings.Contains(logged.String(), "secret") {
			t.Errorf("%d lines, want 1, without the token:\n%s", n, logged)
		}
	})
}

// Requests of the gateway's own page are not logged, whatever its host is called behind a
// proxy, nor those of allowed pages.
func TestOwnOriginsAreNotLogged(t *testing.T) {
	for _, allowed := range [][]string{nil, {"https://app.example.com"}} {
		synctest.Test(t, func(t *testing.T) {
			logged := &lockedText{}
			r := newRig(t, Config{Logger: logTo(logged, slog.LevelInfo), HTTPSettings: HTTPSettings{AllowedOrigins: allowed}}, "a")
			r.Prime("a", 1)
			r.get("/v1/watches").Text()
			r.get("/v1/watches", "Origin: http://gateway").Text()
			r.get("/v1/watches", "Origin: https://public.example.com", "Sec-Fetch-Site: same-origin").Text()
			if allowed != nil {
				r.get("/v1/watches", "Origin: "+allowed[0]).Text()
			}
			if lines := linesWith(logged, "origin refused"); len(lines) != 0 {
				t.Errorf("got %q", lines)
			}
			r.get("/v1/watches", "Origin: https://evil.example/"+strings.Repeat("x", 1000)).Text()
			if lines := linesWith(logged, "origin refused"); len(lines) != 1 || len(lines[0]) > 500 {
				t.Errorf("got %q, want one short line", lines)
			}
		})
	}
}
