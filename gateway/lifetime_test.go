package gateway

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc/metadata"
)

// A stream whose token ends says goodbye in the 30 s before, at a moment of its own, and has
// no data after the end.
func TestStreamEndsBeforeItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		r := newStaffRig(t, g, "a")
		const lasts = 10 * time.Minute
		header := g.asJWT("ann", lasts, "staff")
		var streams []*gatewaytest.Exchange
		for range 20 {
			streams = append(streams, r.get("/v1/events?watch=a", eventStream, header))
		}
		time.Sleep(lasts - 30*time.Second - time.Second)
		if n := countOver(streams); n != 0 {
			t.Errorf("%d streams ended more than 30 s before the token", n)
		}
		time.Sleep(16 * time.Second)
		if n := countOver(streams); n == 0 || n == len(streams) {
			t.Errorf("%d of %d streams ended in half of the time: want some", n, len(streams))
		}
		time.Sleep(14 * time.Second)
		for _, x := range streams {
			wantEnd(t, x, "token_expired")
		}
		wantNoAuthorizations(t, r.gateway)
	})
}

// A client that takes nothing is cut off before its token ends.
func TestBlockedStreamIsCutOffBeforeItsTokenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		r := newRig(t, Config{Access: g.access(wholeWatches("a")), StreamSettings: StreamSettings{WriteTimeout: time.Hour}}, "a")
		r.openBlocked(g.asJWT("ann", time.Minute, "staff"))
		if n := r.gateway.admission.Count(); n != 1 {
			t.Fatalf("%d streams, want 1", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := r.gateway.admission.Count(); n != 0 {
			t.Errorf("%d streams after the end of the token", n)
		}
		wantNoAuthorizations(t, r.gateway)
	})
}

// A client that takes nothing is cut off soon after it was revoked.
func TestBlockedStreamIsCutOffOnceRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.static("ci", "staff")
		r := newRig(t, Config{Access: g.access(wholeWatches("a")), StreamSettings: StreamSettings{WriteTimeout: time.Minute}}, "a")
		r.openBlocked(g.as("ci"))
		r.gateway.authorizations.Revoke("token/ci")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := r.gateway.admission.Count(); n != 0 {
			t.Errorf("%d streams 5 s after the revocation", n)
		}
		wantNoAuthorizations(t, r.gateway)
	})
}

// Without an Access a stream has no authorization, and hello names none.
func TestStreamOfNobodyHasNoAuthorization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		if x := r.get("/v1/events?watch=a"); strings.Contains(x.Text(), `"stream"`) {
			t.Errorf("hello names the stream: %q", x.Text())
		}
		wantNoAuthorizations(t, r.gateway)
		if x := r.request(http.MethodPut, "/v1/streams/X"); x.StatusCode != http.StatusNotFound {
			t.Errorf("renewal: status %d, want 404", x.StatusCode)
		}
	})
}

// A revocation ends the streams of whom it names, and no others.
func TestRevocationEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.static("ci", "staff")
		g.static("cd", "staff")
		r := newRevocableRig(t, g)
		var gone, kept []*gatewaytest.Exchange
		for range 5 {
			gone = append(gone, r.get("/v1/events?watch=a", eventStream, g.as("ci")))
			kept = append(kept, r.get("/v1/events?watch=a", eventStream, g.as("cd")))
		}
		ann := r.get("/v1/events?watch=a", eventStream, g.asJWT("ann", time.Hour, "staff"))
		time.Sleep(time.Second) // they are members of a group
		r.Commit("revocations", 2, gatewaytest.Resource("token/ci", 2, "{}"))
		time.Sleep(time.Second)
		for _, x := range gone {
			wantEnd(t, x, "revoked")
		}
		for _, x := range kept {
			wantOpen(t, x)
		}
		r.Commit("revocations", 3, gatewaytest.Resource("subject/"+accesstest.URL+"/ann", 3, "{}"))
		time.Sleep(time.Second)
		wantEnd(t, ann, "revoked")
		if x := r.get("/v1/events?watch=a", g.as("ci")); x.StatusCode != http.StatusUnauthorized {
			t.Errorf("status %d after the revocation, want 401", x.StatusCode)
		}
		r.Commit("a", 2, gatewaytest.Resource("k", 2, "1"))
		for _, x := range kept {
			if got := x.Text(); !strings.Contains(got, `"key":"k"`) {
				t.Errorf("got %q, want the change", got)
			}
		}
		for _, x := range gone {
			if got := x.Text(); strings.Contains(got, `"key":"k"`) {
				t.Errorf("a revoked stream got the change: %q", got)
			}
		}
	})
}

// A stream of more watches than an ordinary select has cases for ends too.
func TestRevocationEndsStreamOfManyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}
		g := newGuard(t)
		g.static("ci", "staff")
		r := newStaffRig(t, g, names...)
		x := r.get("/v1/events?watch="+strings.Join(names, "&watch="), eventStream, g.as("ci"))
		x.Text()
		r.gateway.authorizations.Revoke("token/ci")
		time.Sleep(slack())
		wantEnd(t, x, "revoked")
		wantNoAuthorizations(t, r.gateway)
	})
}

// What was revoked between the check of a credential and the beginning of its stream ends
// the stream.
func TestRevocationDuringAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.static("ci", "staff")
		a := g.access(wholeWatches("a"))
		a.Revoked = "revocations"
		r := newRig(t, Config{Access: a, StreamSettings: StreamSettings{PrimeWait: time.Minute}}, "a", "revocations")
		r.Prime("revocations", 1)
		synctest.Wait()
		got := make(chan *gatewaytest.Exchange)
		go func() { got <- r.get("/v1/events?watch=a&until=end_of_snapshot", eventStream, g.as("ci")) }()
		synctest.Wait() // it waits for the watch
		r.Commit("revocations", 2, gatewaytest.Resource("token/ci", 2, "{}"))
		synctest.Wait()
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		x := <-got
		time.Sleep(slack())
		wantEnd(t, x, "revoked")
		if got := x.Text(); strings.Contains(got, `"key":"k"`) {
			t.Errorf("a revoked stream got data: %q", got)
		}
	})
}

func TestRevocationEndsLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.static("ci", "staff")
		r := newRevocableRig(t, g)
		position := positionOf(t, r.get("/v1/watches/a/changes", g.as("ci")))
		got := make(chan *gatewaytest.Exchange)
		began := time.Now()
		go func() { got <- r.get("/v1/watches/a/changes?wait=1m&after="+position, g.as("ci")) }()
		synctest.Wait()
		r.Commit("revocations", 2, gatewaytest.Resource("token/ci", 2, "{}"))
		x := <-got
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("answered after %s", waited)
		}
		if text := x.Text(); x.StatusCode != http.StatusOK || !strings.HasPrefix(text, `{"events":[],"position":"`) {
			t.Errorf("status %d: %q", x.StatusCode, text)
		}
		wantNoAuthorizations(t, r.gateway)
	})
}

// A long poll is answered before the token of its client ends.
func TestLongPollEndsBeforeItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		r := newStaffRig(t, g, "a")
		header := g.asJWT("ann", time.Minute, "staff")
		position := positionOf(t, r.get("/v1/watches/a/changes", header))
		began := time.Now()
		r.get("/v1/watches/a/changes?wait=5m&after="+position, header)
		if waited := time.Since(began); waited < 29*time.Second || waited >= time.Minute {
			t.Errorf("answered after %s, want between 30 s and 1 min", waited)
		}
	})
}

// Calls of WatchList end like streams.
func TestWatchListEndsWithItsAuthorization(t *testing.T) {
	for _, c := range []struct {
		reason string
		end    func(r *grpcRig, g *guard)
	}{
		{"revoked", func(r *grpcRig, _ *guard) { r.gateway.authorizations.Revoke("subject/" + accesstest.URL + "/ann") }},
		{"token_expired", func(*grpcRig, *guard) { time.Sleep(10 * time.Minute) }},
		{"watch_replaced", func(r *grpcRig, g *guard) {
			reloadWith(r.t, r.gateway, Config{Access: g.access(map[string]string{"a": `key == "x"`})})
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuard(t)
				r := newGRPCRig(t, Config{Access: g.access(wholeWatches("a"))}, "a")
				r.Prime("a", 1)
				header := strings.TrimPrefix(g.asJWT("ann", 10*time.Minute, "staff"), "Authorization: ")
				ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", header)
				call, err := r.client.WatchList(ctx, &api.WatchListRequest{Watch: "a"})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				last := ""
				go func() {
					for {
						m, err := call.Recv()
						if err != nil {
							ended <- err
							return
						}
						last = m.GetGoodbye().GetReason()
					}
				}()
				synctest.Wait()
				c.end(r, g)
				if err := <-ended; err != io.EOF || last != c.reason {
					t.Errorf("the last event is a goodbye (%s), then %v: want %s", last, err, c.reason)
				}
				wantNoAuthorizations(t, r.gateway)
			})
		})
	}
}

// A reload ends the streams that have nothing of a watch any more, and has those go on that
// have another part of it.
func TestReloadOfRulesEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.static("ci", "staff")
		r := newRig(t, Config{Access: g.access(wholeWatches("same", "other", "none"))}, "same", "other", "none")
		streams := map[string][]*gatewaytest.Exchange{}
		for _, name := range []string{"same", "other", "none"} {
			r.Prime(name, 1)
			for range 3 {
				streams[name] = append(streams[name], r.get("/v1/events?watch="+name, eventStream, g.as("ci")))
			}
		}
		both := r.get("/v1/events?watch=same&watch=other", eventStream, g.as("ci"))
		time.Sleep(time.Second)
		reads := map[string]string{"same": "true", "other": `key.startsWith("x")`, "none": ""}
		reloadWith(t, r.gateway, Config{Access: g.access(reads)})
		time.Sleep(slack())
		for i := range 3 {
			wantOpen(t, streams["same"][i])
			wantOpen(t, streams["other"][i])
			wantEnd(t, streams["none"][i], "revoked")
		}
		wantOpen(t, both)
		back := r.get("/v1/events?watch=other&last_event_id=other@e1-1", eventStream, g.as("ci"))
		if got := back.Text(); !strings.Contains(got, "reset") || !strings.Contains(got, "epoch_changed") {
			t.Errorf("a stream that comes back from before its switch: %q, want a reset", got)
		}
		if x := r.get("/v1/events?watch=none", g.as("ci")); x.StatusCode != http.StatusNotFound {
			t.Errorf("status %d of the watch that was lost, want 404", x.StatusCode)
		}
		reloadWith(t, r.gateway, Config{Access: g.access(reads)})
		time.Sleep(slack())
		wantOpen(t, back)
		wantOpen(t, streams["same"][0])
	})
}

// A static token that is gone, or is a member of other groups, has other rights at once.
func TestReloadOfTokensEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		for _, name := range []string{"stays", "gone", "moved", "joins"} {
			g.static(name, "staff")
		}
		r := newStaffRig(t, g, "a")
		streams := map[string]*gatewaytest.Exchange{}
		for name := range g.tokens {
			streams[name] = r.get("/v1/events?watch=a", eventStream, g.as(name))
		}
		time.Sleep(time.Second)
		delete(g.lines, "gone")
		g.static("moved", "guests")
		g.static("joins", "guests", "staff")
		reloadWith(t, r.gateway, Config{Access: g.access(wholeWatches("a"))})
		time.Sleep(slack())
		wantEnd(t, streams["gone"], "revoked")
		wantEnd(t, streams["moved"], "revoked")
		wantOpen(t, streams["stays"])
		wantOpen(t, streams["joins"])
	})
}

// A key that revokes nobody is in the log: somebody believes that it does.
func TestRevocationsOfNobodyAreLogged(t *testing.T) {
	for key, wrong := range map[string]bool{
		"token/ci": false, "session/X": false, "subject/" + accesstest.URL + "/ann": false, "subject/" + accesstest.URL + "/a%2Fb%25": false,
		"ci": true, "token/": true, "subject/ann": true, "subject/" + accesstest.URL + "/auth0%7C1": true, "subject/" + accesstest.URL + "/a%2fb": true,
		"subject/" + accesstest.URL + "/a/b": true, "subject/" + accesstest.URL + "/": true, "subject/https://other.example.com/ann": true,
	} {
		synctest.Test(t, func(t *testing.T) {
			logged := &lockedText{}
			a := newGuard(t).access(wholeWatches("a"))
			a.Revoked = "revocations"
			r := newRig(t, Config{Access: a, Logger: slog.New(slog.NewTextHandler(logged, nil))}, "a", "revocations")
			r.Prime("revocations", 1, gatewaytest.Resource("token/gone", 1, "{}"))
			synctest.Wait()
			r.Commit("revocations", 2, gatewaytest.Resource(key, 2, "{}"))
			time.Sleep(time.Second)
			if text := logged.String(); strings.Contains(text, "match no credential") != wrong || wrong && !strings.Contains(text, key) {
				t.Errorf("%s: %s", key, text)
			}
		})
	}
}

// A login as somebody else ends the streams of the session that the browser had until then, and
// a logout those of the session of its cookie, whoever asks for it.
func TestNextLoginEndsTheStreamsBefore(t *testing.T) {
	for name, next := range map[string]func(r *rig, g *guard, cookie string) *gatewaytest.Exchange{
		"login": func(r *rig, g *guard, cookie string) *gatewaytest.Exchange {
			return r.request(http.MethodPost, "/v1/session", cookie, g.as("bob"))
		},
		"logout with a token too": func(r *rig, g *guard, cookie string) *gatewaytest.Exchange {
			return r.request(http.MethodDelete, "/v1/session", cookie, g.as("bob"))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuard(t)
			g.static("ann", "staff")
			g.static("bob", "staff")
			r := newStaffRig(t, g, "a")
			session := func(name string) string {
				cookie, _, _ := strings.Cut(r.request(http.MethodPost, "/v1/session", g.as(name)).Header.Get("Set-Cookie"), ";")
				return "Cookie: " + cookie
			}
			here, elsewhere := session("ann"), session("ann")
			gone := r.get("/v1/events?watch=a", eventStream, here)
			stays := []*gatewaytest.Exchange{r.get("/v1/events?watch=a", eventStream, elsewhere), r.get("/v1/events?watch=a", eventStream, g.as("ann"))}
			if x := next(r, g, here); x.StatusCode != http.StatusNoContent {
				t.Fatalf("%s: status %d", name, x.StatusCode)
			}
			time.Sleep(slack())
			wantEnd(t, gone, "revoked")
			for _, x := range stays {
				wantOpen(t, x)
			}
			if x := r.get("/v1/watches", here); x.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: with the cookie of before: status %d", name, x.StatusCode)
			}
		})
	}
}

// What the claims of a token mean is decided by the configuration of now: who is in another
// group loses the watch, who has another name comes back with it, and all others stay.
func TestReloadOfClaimsEndsStreams(t *testing.T) {
	for _, c := range []struct {
		change func(*jwt.Issuer)
		want   string // the reason of the goodbye; empty: the stream goes on
	}{
		{func(i *jwt.Issuer) { i.Algorithms = append(i.Algorithms, "RS256") }, ""},
		{func(i *jwt.Issuer) { i.Algorithms = []string{"RS256"} }, "revoked"},
		{func(i *jwt.Issuer) { i.Keys = accesstest.NewProvider(t).Issuer().Keys }, "revoked"},
		{func(i *jwt.Issuer) { i.Groups = "roles" }, "revoked"},
		{func(i *jwt.Issuer) { i.Audience = "other" }, "revoked"},
		{func(i *jwt.Issuer) { i.Name = "aud" }, "watch_replaced"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuard(t)
			r := newStaffRig(t, g, "a")
			x := r.get("/v1/events?watch=a", eventStream, g.asJWT("ann", time.Hour, "staff"))
			time.Sleep(time.Second)
			next := g.access(wholeWatches("a"))
			c.change(&next.Credentials.Issuers[0])
			reloadWith(t, r.gateway, Config{Access: next})
			time.Sleep(slack())
			if c.want == "" {
				wantOpen(t, x)
				return
			}
			wantEnd(t, x, c.want)
		})
	}
}

// A call of WatchList cannot be renewed. Its client calls again with the next token, from the
// last position, and gets what has changed since.
func TestWatchListGoesOnWithTheNextToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		r := newGRPCRig(t, Config{Access: g.access(wholeWatches("a"))}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		synctest.Wait() // until it is in sync
		position := ""
		for i, want := range []string{"reset upsert end_of_snapshot goodbye", "end_of_snapshot upsert goodbye"} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", strings.TrimPrefix(g.asJWT("ann", time.Minute, "staff"), "Authorization: "))
			call, err := r.client.WatchList(ctx, &api.WatchListRequest{Watch: "a", Position: position})
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				synctest.Wait()
				r.Commit("a", 2, gatewaytest.Resource("k", 2, "2"))
			}
			got, end := "", error(nil)
			for end == nil {
				var m *api.WatchListResponse
				if m, end = call.Recv(); end == nil {
					got += " " + kindOf(m)
					position = cmp.Or(m.GetPosition(), position)
				}
			}
			if got = strings.TrimSpace(got); got != want || end != io.EOF {
				t.Errorf("call %d: %q, then %v; want %q and a clean end", i+1, got, end, want)
			}
		}
		wantNoAuthorizations(t, r.gateway)
	})
}

// kindOf returns the type of an event of a call.
func kindOf(m *api.WatchListResponse) string {
	switch m.GetEvent().(type) {
	case *api.WatchListResponse_Reset_:
		return "reset"
	case *api.WatchListResponse_Upsert:
		return "upsert"
	case *api.WatchListResponse_EndOfSnapshot:
		return "end_of_snapshot"
	case *api.WatchListResponse_Goodbye:
		return "goodbye"
	}
	return fmt.Sprintf("%T", m.GetEvent())
}

// A stream goes on until the end of the token with which it was renewed.
func TestRenewedStreamGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		r := newStaffRig(t, g, "a")
		x := r.get("/v1/events?watch=a", eventStream, g.asJWT("ann", 10*time.Minute, "staff"))
		id := idOf(t, x)
		put := func(id, header string) int { return r.request(http.MethodPut, "/v1/streams/"+id, header).StatusCode }
		time.Sleep(8 * time.Minute)
		if got := put(id, g.asJWT("ann", 10*time.Minute, "staff")); got != http.StatusNoContent {
			t.Fatalf("status %d, want 204", got)
		}
		if got := put(id, g.asJWT("ann", time.Minute, "staff")); got != http.StatusNoContent {
			t.Errorf("status %d of a token that ends earlier, want 204", got)
		}
		if got := put(id, g.asJWT("bob", time.Hour, "staff")); got != http.StatusForbidden {
			t.Errorf("status %d of another principal, want 403", got)
		}
		if got := put("UNKNOWN", g.asJWT("ann", time.Hour, "staff")); got != http.StatusNotFound {
			t.Errorf("status %d of an unknown stream, want 404", got)
		}
		time.Sleep(9 * time.Minute)
		wantOpen(t, x)
		time.Sleep(time.Minute)
		wantEnd(t, x, "token_expired")
		if got := put(id, g.asJWT("ann", time.Hour, "staff")); got != http.StatusNotFound {
			t.Errorf("status %d after the end, want 404", got)
		}
	})
}

// A renewal with a token that lets its holder see something else ends the stream.
func TestRenewalWithOtherClaimsEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		r := newStaffRig(t, g, "a")
		x := r.get("/v1/events?watch=a", eventStream, g.asJWT("ann", time.Hour, "staff"))
		if got := r.request(http.MethodPut, "/v1/streams/"+idOf(t, x), g.asJWT("ann", time.Hour, "guests")); got.StatusCode != http.StatusNoContent {
			t.Errorf("status %d, want 204", got.StatusCode)
		}
		time.Sleep(slack())
		wantEnd(t, x, "revoked")
	})
}

// Streams that begin, end, are renewed and are revoked at the same time leave nothing
// behind.
func TestAuthorizationsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		names := []string{"n0", "n1", "n2", "n3"}
		for _, name := range names {
			g.static(name, "staff")
		}
		r := newStaffRig(t, g, "a")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 40 {
				r.gateway.authorizations.Revoke("token/" + names[i%len(names)])
				reads := map[string]string{"a": fmt.Sprintf(`key != "%d"`, i%2)}
				if err := r.gateway.Reload(Config{Access: g.access(reads)}); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
			}
		}()
		var streams []*gatewaytest.Exchange
		for i := range 40 {
			streams = append(streams, r.get("/v1/events?watch=a", eventStream, g.as(names[i%len(names)])))
			time.Sleep(time.Millisecond)
		}
		<-done
		for _, name := range names {
			r.gateway.authorizations.Revoke("token/" + name)
		}
		time.Sleep(slack())
		if n := countOver(streams); n != len(streams) {
			t.Errorf("%d of %d streams have ended", n, len(streams))
		}
		if slices.ContainsFunc(streams, func(x *gatewaytest.Exchange) bool { return strings.Contains(x.Text(), `"reason":"aborted"`) }) {
			t.Error("a stream was aborted")
		}
		wantNoAuthorizations(t, r.gateway)
	})
}
