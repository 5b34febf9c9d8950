package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// follow loops over Watch against a script in fake time, to the end. each is called for each event
// and for the end of each watch; nil: the first error ends the loop.
func follow(t *testing.T, s *script, ctx context.Context, each func(Event, error) error, options ...WatchOption) (*recorder, error) {
	t.Helper()
	server, stop := serve(t, s.ServeHTTP)
	defer stop()
	rec := &recorder{each: each}
	return rec, rec.record(server.Watch(ctx, "w", options...))
}

func TestWatchHandsOverEveryEventWithItsOwnID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{replies(hello + reset + upsert("a", 1, false) + upsert("b", 2, false) + endOfSnapshot(2, 2) +
			beat + upsert("c", 3, true) + beat + remove("a", 4, false) + remove("b", 4, true) + remove("x", 4, true) + allGone)}}
		rec, err := follow(t, s, t.Context(), nil)
		want := "hello\nreset\nupsert a\nupsert b\nend_of_snapshot w@e-2\nupsert c w@e-3\ndelete a\ndelete b w@e-4\ndelete x w@e-4\ngoodbye"
		if err != nil || rec.String() != want {
			t.Errorf("got %v and\n%s\nwant\n%s", err, rec, want)
		}
	})
}

func TestWatchReconnectsAndResumesFromTheNewestID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{
			replies(hello + reset + upsert("a", 1, true)),
			breaks(hello + upsert("b", 2, false)),
			replies(hello + upsert("b", 2, false) + endOfSnapshot(3, 2)),
			replies(hello + allGone),
		}}
		rec, err := follow(t, s, t.Context(), nil)
		if want := []string{"", "w@e-1", "w@e-1", "w@e-3"}; err != nil || !slices.Equal(s.resumeIDs(), want) {
			t.Errorf("got %v, %q, want %q", err, s.resumeIDs(), want)
		}
		if len(rec.lost) != 3 {
			t.Errorf("lost: %q, want three times", rec.lost)
		}
		for i, most := range []int64{2000, 4000, 8000} {
			if ms := rec.waits[i]; ms < 2000 || ms > most {
				t.Errorf("waited %d ms, want from the 2,000 of retry: to %d", ms, most)
			}
		}
	})
}

// An event that no id covers is not handed over: after a lost connection it comes again, or never did.
// A status does not wait for the events of other watches.
func TestWatchHandsOverWhatAnIDCovers(t *testing.T) {
	status := func(watch string) string {
		return fmt.Sprintf("event: status\ndata: {\"type\":\"status\",\"watch\":%q,\"state\":\"stale\"}\n\n", watch)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{
			replies(hello + reset + upsert("a", 1, true) + status("w") + upsert("b", 2, false) + status("w") + status("v")),
			replies(hello + upsert("b", 3, false) + upsert("c", 3, true) + allGone),
		}}
		rec, err := follow(t, s, t.Context(), nil, And("v"))
		if want := "hello\nreset\nupsert a w@e-1\nstatus\nstatus\nhello\nupsert b\nupsert c w@e-3\ngoodbye"; err != nil || rec.String() != want {
			t.Errorf("got %v and\n%s\nwant\n%s", err, rec, want)
		}
	})
}

// A loop may be left at any event, and begun again.
// TestWatchHoldsSoMuch: a server that never sends an ID does not fill the memory of its client.
func TestWatchHoldsSoMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{replies(hello + reset + upsert("a", 1, false) + upsert("b", 2, false) + endOfSnapshot(2, 2)), replies(hello + allGone)}}
		server, stop := serve(t, s.ServeHTTP)
		defer stop()
		server.options.MaxUncommittedBytes = 2 * eventCost
		rec := &recorder{}
		err := rec.record(server.Watch(t.Context(), "w"))
		if err != nil || strings.Contains(rec.String(), "upsert") || len(rec.lost) != 1 || !strings.Contains(rec.lost[0], "no ID covers them") {
			t.Errorf("got %v, lost %q and\n%s", err, rec.lost, rec)
		}
	})
}

func TestWatchMayBeLeft(t *testing.T) {
	for leave := 1; leave <= 4; leave++ {
		synctest.Test(t, func(t *testing.T) {
			server, stop := serve(t, http.HandlerFunc(replies(hello+reset+upsert("a", 1, true)+goodbye("draining", 1000))))
			defer stop()
			changes := server.Watch(t.Context(), "w")
			for range 2 {
				seen := 0
				for _, err := range changes {
					if err != nil {
						t.Fatal(err)
					}
					if seen++; seen == leave {
						break
					}
				}
			}
		})
	}
}

func TestWatchContinuesFromAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{refuses(503), replies(hello + upsert("b", 6, true)), replies(hello + allGone)}}
		_, err := follow(t, s, t.Context(), nil, From("w@e-5"))
		if want := []string{"w@e-5", "w@e-5", "w@e-6"}; err != nil || !slices.Equal(s.resumeIDs(), want) {
			t.Errorf("got %v, %q, want %q", err, s.resumeIDs(), want)
		}
	})
}

// An event that is cut off by the end of the connection is ignored, wherever
// the cut is: in particular, half an id is not a position.
func TestWatchIgnoresCutEvents(t *testing.T) {
	whole := upsert("b", 1234, true)
	for at := 1; at < len(whole)-1; at++ {
		for name, end := range map[string]func(string) turn{"ends": replies, "breaks": breaks} {
			synctest.Test(t, func(t *testing.T) {
				s := &script{turns: []turn{end(hello + reset + upsert("a", 1, true) + whole[:at]), replies(allGone)}}
				rec, err := follow(t, s, t.Context(), nil)
				if want := "hello\nreset\nupsert a w@e-1\ngoodbye"; err != nil || rec.String() != want {
					t.Errorf("cut at %d (%s) after %q: got %v\n%s", at, name, whole[:at], err, rec)
				}
				if ids := s.resumeIDs(); ids[1] != "w@e-1" {
					t.Errorf("cut at %d (%s): resumed from %q", at, name, ids[1])
				}
			})
		}
	}
}

func TestWatchObeysGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{
			replies(hello + goodbye("draining", 4210)),
			replies("retry: 1\n\n" + goodbye("overloaded", 60000)),
			replies(allGone),
		}}
		began := time.Now()
		rec, err := follow(t, s, t.Context(), nil)
		if err != nil || time.Since(began) != 64210*time.Millisecond {
			t.Errorf("got %v after %v, want nil after 64.21s", err, time.Since(began))
		}
		if !strings.Contains(rec.lost[0], "draining") || !strings.Contains(rec.lost[1], "overloaded") {
			t.Errorf("lost: %q", rec.lost)
		}
	})
}

// A deployment may move a client several times: each time it waits as long as it is asked to.
func TestMovesDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moves := func(w http.ResponseWriter, _ *http.Request) {
			write(w, hello)
			time.Sleep(time.Second)
			write(w, goodbye("draining", 2000))
		}
		s := &script{turns: []turn{moves, moves, moves, moves, moves, moves, moves, replies(allGone)}}
		began := time.Now()
		_, err := follow(t, s, t.Context(), nil)
		if took := time.Since(began); err != nil || took != 21*time.Second {
			t.Errorf("got %v after %v, want nil after 7 times a second and the wait of 2 s", err, took)
		}
	})
}

// A server that says goodbye at once, or for overload, is no server that moves its clients: a client
// backs off, whatever it asks for.
func TestGoodbyesThatAreNoMoves(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		after  time.Duration
	}{"at once": {"draining", 0}, "for overload": {"overloaded", time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			const connections = 40
			s := &script{}
			for range connections {
				s.turns = append(s.turns, func(w http.ResponseWriter, _ *http.Request) {
					write(w, hello)
					time.Sleep(c.after)
					write(w, goodbye(c.reason, 100))
				})
			}
			s.turns = append(s.turns, replies(allGone))
			began := time.Now()
			_, err := follow(t, s, t.Context(), nil)
			// 35 of the waits are up to 30 s each, and 15 on average. As a move, each would take 0.1 s.
			if waited := time.Since(began) - connections*c.after; err != nil || waited < 2*time.Minute {
				t.Errorf("%s: %v after waits of %v, want at least two minutes", name, err, waited)
			}
		})
	}
}

func TestWatchEndsWhenRetryingIsUseless(t *testing.T) {
	for name, c := range map[string]struct {
		turn turn
		want string
	}{
		"unknown watch": {refuses(404), "404 Not Found: so it is"},
		"forbidden":     {refuses(403), "403 Forbidden: so it is"},
		"wrong filter":  {refuses(400), "400 Bad Request: so it is"},
		"removed":       {replies(hello + goodbye("watch_removed", 0)), ErrRemoved.Error()},
		"revoked":       {replies(hello + goodbye("revoked", 0)), ErrRevoked.Error()},
		"no gateway": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello") },
			`406 Not a stream of events: the answer is "text/html; charset=utf-8": is this a gateway?`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := follow(t, &script{turns: []turn{c.turn}}, t.Context(), nil)
				if err == nil || err.Error() != c.want {
					t.Errorf("got  %v\nwant %s", err, c.want)
				}
			})
		})
	}
}

// One of several watches is refused by name, at first or after it was removed. The caller
// gets the reason, and the others go on at once, from their newest position.
func TestWatchGoesOnWithoutARefusedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{
			refusesWatch("u", 400),
			replies(hello + upsert("a", 1, true) + goodbye("watch_removed", 3000)),
			refusesWatch("v", 404),
			replies(hello + upsert("b", 2, true) + goodbye("watch_removed", 1000)),
		}}
		var refused []string
		began := time.Now()
		rec, err := follow(t, s, t.Context(), func(e Event, err error) error {
			if err != nil {
				refused = append(refused, e.Watch+": "+err.Error())
			}
			return nil
		}, And("u", "v"), View{Prefix: "a"})
		if want := []string{"u: 400 Bad Request: so it is", "v: 404 Not Found: so it is"}; !slices.Equal(refused, want) {
			t.Errorf("refused: %q, want %q", refused, want)
		}
		if !errors.Is(err, ErrRemoved) { // of the last one
			t.Errorf("got %v", err)
		}
		if len(rec.lost) != 1 || time.Since(began) != 3*time.Second {
			t.Errorf("lost %q within %v", rec.lost, time.Since(began))
		}
		if want := "hello\nupsert a w@e-1\ngoodbye\nhello\nupsert b w@e-2\ngoodbye"; rec.String() != want {
			t.Errorf("got\n%s\nwant\n%s", rec, want)
		}
		var queries []string
		for _, r := range s.requests {
			queries = append(queries, r.URL.RawQuery+" "+r.Header.Get("Last-Event-ID"))
		}
		if want := []string{
			"prefix.u=a&prefix.v=a&prefix.w=a&watch=w&watch=u&watch=v ", "prefix.v=a&prefix.w=a&watch=w&watch=v ",
			"prefix.v=a&prefix.w=a&watch=w&watch=v w@e-1", "prefix.w=a&watch=w w@e-1",
		}; !slices.Equal(queries, want) {
			t.Errorf("got %q, want %q", queries, want)
		}
	})
}

// Access to one of several watches is revoked: the caller gets the refusal of that watch, and
// the other goes on. If the token was revoked, everything ends, and the error says so.
func TestWatchGoesOnWithoutARevokedWatch(t *testing.T) {
	for status, want := range map[int]string{404: "v: 404 Not Found: so it is", 401: ""} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{turns: []turn{
				replies(hello + upsert("a", 1, true) + goodbye("revoked", 1000)),
				refusesWatch("v", status),
				replies(hello + upsert("b", 2, true) + goodbye("revoked", 1000)),
			}}
			refused := ""
			rec, err := follow(t, s, t.Context(), func(e Event, err error) error {
				if err != nil {
					refused += e.Watch + ": " + err.Error()
				}
				return nil
			}, And("v"))
			if refused != want || !errors.Is(err, ErrRevoked) || errors.Is(err, ErrUnauthenticated) != (status == 401) {
				t.Errorf("%d: refused %q, want %q; got %v", status, refused, want, err)
			}
			if goesOn := strings.Contains(rec.String(), "upsert b"); goesOn != (status == 404) {
				t.Errorf("%d: got %s", status, rec)
			}
		})
	}
}

// A refusal ends everything if it is not about one of several watches, or if the caller leaves.
func TestWatchEndsIfNoWatchIsLeft(t *testing.T) {
	enough := errors.New("enough")
	goOn := func(Event, error) error { return nil }
	leave := func(_ Event, err error) error {
		if err != nil {
			return enough
		}
		return nil
	}
	for name, c := range map[string]struct {
		turn turn
		more WatchOption
		each func(Event, error) error
		want string
	}{
		"the only one":            {refusesWatch("w", 404), And(), goOn, "404 Not Found: so it is"},
		"of no name":              {refuses(404), And("v"), goOn, "404 Not Found: so it is"},
		"of another name":         {refusesWatch("x", 404), And("v"), goOn, "404 Not Found: so it is"},
		"about the whole request": {refusesWatch("w", 401), And("v"), goOn, "401 Unauthorized: so it is"},
		"the caller has enough":   {refusesWatch("w", 404), And("v"), leave, "enough"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{turns: []turn{c.turn}}
				_, err := follow(t, s, t.Context(), c.each, c.more)
				if err == nil || err.Error() != c.want || len(s.requests) != 1 {
					t.Errorf("got %v after %d requests, want %s", err, len(s.requests), c.want)
				}
			})
		})
	}
}

func TestWatchRetriesATemporaryRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{refuses(503, "Retry-After", "7"), refuses(429), refuses(500), replies(allGone)}}
		rec, err := follow(t, s, t.Context(), nil)
		if err != nil || len(rec.waits) != 3 || rec.waits[0] < 7000 {
			t.Errorf("got %v, waited %v, want three times, first at least 7,000", err, rec.waits)
		}
	})
}

func TestWatchNoticesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &script{turns: []turn{stalls(hello + reset), replies(allGone)}}
		rec, err := follow(t, s, t.Context(), nil)
		if err != nil || len(rec.lost) != 1 || !strings.Contains(rec.lost[0], "not even a heartbeat") {
			t.Fatalf("got %v, lost %q", err, rec.lost)
		}
		silent := time.Since(began) - time.Duration(rec.waits[0])*time.Millisecond
		if silent < 37*time.Second || silent > 38*time.Second {
			t.Errorf("noticed after %v, want 2.5 heartbeats of 15 s", silent)
		}
	})
}

func TestWatchTreatsCommentsAsActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := func(w http.ResponseWriter, _ *http.Request) {
			write(w, hello)
			for range 20 {
				time.Sleep(15 * time.Second)
				write(w, beat)
			}
			write(w, allGone)
		}
		rec, err := follow(t, &script{turns: []turn{beats}}, t.Context(), nil)
		if err != nil || len(rec.lost) != 0 {
			t.Errorf("got %v, lost %q", err, rec.lost)
		}
	})
}

func TestWatchDoesNotMistakeASlowConsumerForSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// More than the buffers on the way hold, so that it is read in pieces.
		filling := ": " + strings.Repeat("x", 200_000) + "\n\n"
		s := &script{turns: []turn{replies(hello + reset + upsert("a", 1, true) + filling + upsert("b", 2, true) + filling + allGone)}}
		rec, err := follow(t, s, t.Context(), func(Event, error) error {
			time.Sleep(10 * time.Minute)
			return nil
		})
		if err != nil || len(rec.lost) != 0 {
			t.Errorf("got %v, lost %q", err, rec.lost)
		}
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	for name, turns := range map[string][]turn{
		"reading": {stalls(hello + reset)},
		"waiting": {replies(hello + goodbye("draining", 3600000))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := errors.New("over")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, over)
				defer cancel()
				began := time.Now()
				_, err := follow(t, &script{turns: turns}, ctx, nil)
				if !errors.Is(err, over) || time.Since(began) != 10*time.Second {
					t.Errorf("got %v after %v", err, time.Since(began))
				}
			})
		})
	}
}

func TestWatchEndsWhenItsCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough, seen := errors.New("enough"), 0
		_, err := follow(t, &script{turns: []turn{stalls(hello + reset + upsert("a", 1, true))}}, t.Context(),
			func(Event, error) error {
				if seen++; seen == 2 {
					return enough
				}
				return nil
			})
		if !errors.Is(err, enough) || seen != 2 {
			t.Errorf("got %v after %d events", err, seen)
		}
	})
}

func TestWatchSendsItsOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{replies(allGone)}}
		_, err := follow(t, s, t.Context(), nil, And("v"), View{Prefix: "a b/"}, UntilEndOfSnapshot())
		if err != nil {
			t.Fatal(err)
		}
		const want = "/v1/events?prefix.v=a+b%2F&prefix.w=a+b%2F&until=end_of_snapshot&watch=w&watch=v"
		if got := s.requests[0].URL.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := s.requests[0].Header.Get("Incremental"); got != "?1" {
			t.Errorf("Incremental %q, want ?1", got)
		}
		if got := s.requests[0].Header.Get("Accept"); got != "*/*" {
			t.Errorf("Accept: %q", got)
		}
	})
}

func TestWatchRefusesInvalidEvents(t *testing.T) {
	for name, bad := range map[string]string{
		"no JSON":      "event: upsert\ndata: {\n\n",
		"another type": "event: upsert\ndata: {\"type\":\"delete\",\"watch\":\"w\"}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{turns: []turn{stalls(hello + reset + upsert("a", 1, true) + bad + upsert("b", 2, true)), replies(allGone)}}
				rec, err := follow(t, s, t.Context(), nil)
				if want := []string{"", "w@e-1"}; err != nil || !slices.Equal(s.resumeIDs(), want) {
					t.Errorf("got %v, resumed from %q, want %q", err, s.resumeIDs(), want)
				}
				if len(rec.lost) != 1 || !strings.Contains(rec.lost[0], "upsert event") {
					t.Errorf("lost: %q", rec.lost)
				}
			})
		})
	}
}

func TestWatchTakesLargeEventsAndManySmallOnesAfterThem(t *testing.T) {
	large := strings.Repeat("x", 5<<20)
	var text strings.Builder
	text.WriteString(hello + reset)
	fmt.Fprintf(&text, "event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"w\",\"key\":\"big\",\"revision\":\"1\",\"value\":%q}\n\n", large)
	for i := range 5000 {
		text.WriteString(upsert(fmt.Sprint("k", i), i+2, true))
	}
	text.WriteString(endOfSnapshot(5001, 5001) + allGone)
	s := &script{turns: []turn{replies(text.String())}}
	replica := NewReplica("w")
	_, err := follow(t, s, t.Context(), func(e Event, _ error) error { return replica.Apply(e) })
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := replica.Get("big"); replica.Len() != 5001 || len(r.Value) != len(large)+2 {
		t.Errorf("got %d resources, the large one with %d bytes", replica.Len(), len(r.Value))
	}
}

func TestWatchForgetsFailuresAfterAHealthyMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy := func(w http.ResponseWriter, _ *http.Request) {
			write(w, hello)
			for range 5 {
				time.Sleep(15 * time.Second)
				write(w, beat)
			}
		}
		rec, err := follow(t, &script{turns: []turn{refuses(503), refuses(503), refuses(503), refuses(503), healthy, replies(allGone)}}, t.Context(), nil)
		if err != nil || len(rec.waits) != 5 || rec.waits[4] != 2000 {
			t.Errorf("got %v, waited %v, want five times, at last the 2,000 of retry:", err, rec.waits)
		}
	})
}

// A connection on which nothing came any more was not healthy meanwhile.
func TestSilenceIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := func(w http.ResponseWriter, r *http.Request) {
			write(w, hello)
			time.Sleep(15 * time.Second)
			write(w, beat)
			time.Sleep(15 * time.Second)
			stalls(beat)(w, r)
		}
		server, stop := serve(t, lost)
		defer stop()
		end := (&Stream{URL: "http://gateway.test/v1/events?watch=w", Client: server.http(), Handle: func(Event) error { return nil }}).Run(t.Context())
		if end.Lasted != 30*time.Second {
			t.Errorf("lasted %v, want the 30 s without the silence", end.Lasted)
		}
	})
}
