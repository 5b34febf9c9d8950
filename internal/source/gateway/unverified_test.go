package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// holding is a Sink that has one resource.
type holding struct{ *calls }

// Held implements stream.Holding.
func (holding) Held(yield func(stream.Resource) bool) {
	yield(stream.Resource{Key: "x", Revision: 1, Value: []byte("1")})
}

// Compare implements stream.Holding.
func (holding) Compare(digest string) (bool, error) { return digest == heldDigest, nil }

// verifyOf is the events of an upstream that has a digest in place of a reset.
func verifyOf(digest string) string {
	return event("end_of_snapshot", fmt.Sprintf(`,"revision":"9","count":1,"resumed":true,"verify":true,"digest":%q`, digest), "w@f-9")
}

// watches runs Watch again and again, as ingest does, for a while.
func watches(t *testing.T, s *Source, sink stream.Sink) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		for ctx.Err() == nil {
			err := s.Watch(ctx, stream.Resume{Epoch: "e", Revision: 2}, sink)
			t.Log(err)
			time.Sleep(time.Second)
		}
		close(ended)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// TestWhatCannotBeVerified: an upstream that has no state with the digest that it sent, or says something else, is
// asked for a snapshot after two attempts, and not at once for another digest.
func TestWhatCannotBeVerified(t *testing.T) {
	for name, answer := range map[string]turn{
		"gone":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
		"not found": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"nonsense": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"buckets":7,"table":"AAAA","keys":[]}`)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test/", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts, requests := mostUnverified, 2
				if name == "gone" { // another replica may have it, so the client asks eight times more
					attempts, requests = attempts+mostGone, requests+8
				}
				var asked []string
				_, u, stop := serve(t, Config{Headers: nil}, func(w http.ResponseWriter, r *http.Request) {
					switch resume := r.URL.Query().Get("resume"); {
					case !strings.HasSuffix(r.URL.Path, "/events"):
						asked = append(asked, "digest")
						answer(w, r)
					case resume != "":
						asked = append(asked, resume)
						stalls(hello, verifyOf("5-00000000000000020e028795aa10cb6f"))(w, r)
					default:
						asked = append(asked, "snapshot")
						stalls(primed())(w, r)
					}
				})
				defer stop()
				sink := holding{&calls{}}
				end := watches(t, sourceOf(t, u, "w"), sink)
				defer end()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				if len(asked) == 0 || asked[len(asked)-1] != "snapshot" || slices.Index(asked, "snapshot") != requests*attempts {
					t.Errorf("asked for %q", asked)
				}
				want := strings.Repeat("status resyncing verifying what is held\n", attempts) + strings.TrimSuffix(primedCalls, "\n")
				if sink.String() != want {
					t.Errorf("calls\n%s\nwant\n%s", sink, want)
				}
			})
		})
	}
}

// TestUpstreamThatCannotAnswerForNow: an upstream that refuses requests about a state for some time, or a network that fails, is asked again.
// As long as it takes, no snapshot is asked for.
func TestUpstreamThatCannotAnswerForNow(t *testing.T) {
	for name, answer := range map[string]turn{
		"503":       refuses(http.StatusServiceUnavailable, "no room for answers", "Retry-After", "2"),
		"429":       refuses(http.StatusTooManyRequests, "too many requests", "Retry-After", "2"),
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		for _, long := range []time.Duration{5 * time.Second, 5 * time.Minute} {
			t.Run(fmt.Sprint(name, " for ", long), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began, asked := time.Now(), 0
					_, u, stop := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
						switch {
						case strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("resume") == "":
							t.Error("a snapshot is asked for")
						case strings.HasSuffix(r.URL.Path, "/events"):
							stalls(hello, verifyOf("1-00000000000000000a0b63040ce39073"))(w, r)
						case time.Since(began) < long:
							asked++
							answer(w, r)
						default:
							_, _ = io.WriteString(w, `{"keys":[{"key":"x","revision":"7","hash":"0a0b63040ce39073"}],"next_page_token":""}`)
						}
					})
					defer stop()
					sink := holding{&calls{}}
					end := watches(t, sourceOf(t, u, "w"), sink)
					defer end()
					time.Sleep(long + time.Minute)
					synctest.Wait()
					if want := "reset f\nupsert \"x\" 7 1\ncommit 9\nstatus in_sync "; !strings.HasSuffix(sink.String(), want) {
						t.Errorf("calls\n%s\nwant at the end\n%s", sink, want)
					}
					if most := int(long/time.Second) + 2; asked < 1 || asked > most {
						t.Errorf("it has asked %d times in %v, want 1 to %d", asked, long, most)
					}
				})
			})
		}
	}
}

// TestVerifiedWithoutRequests: a digest that is that of what is held needs the revisions alone, and the position may
// come with a later event.
func TestVerifiedWithoutRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, u, stop := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/keys") {
				_, _ = io.WriteString(w, `{"keys":[{"key":"x","revision":"7","hash":"0a0b63040ce39073"}],"next_page_token":""}`)
				return
			}
			stalls(hello,
				status("catching_up", "verify what is held", ""),
				event("end_of_snapshot", `,"revision":"9","count":1,"resumed":true,"verify":true,"digest":"1-00000000000000000a0b63040ce39073"`, ""),
				upsert("y", 10, "2", "w@f-10"))(w, r)
		})
		defer stop()
		sink := holding{&calls{}}
		end := watches(t, sourceOf(t, u, "w"), sink)
		defer end()
		time.Sleep(time.Second)
		synctest.Wait()
		if want := "status resyncing verifying what is held\nreset f\nupsert \"x\" 7 1\ncommit 9\nstatus in_sync \nupsert \"y\" 10 2\ncommit 10"; sink.String() != want {
			t.Errorf("calls\n%s\nwant\n%s", sink, want)
		}
	})
}

// charged counts what a sink is charged.
type charged struct {
	holding
	now, most atomic.Int64
}

// Charge implements [stream.Sink].
func (c *charged) Charge(bytes int64) { c.most.Store(max(c.most.Load(), c.now.Add(bytes))) }

// TestWaitingIsCharged: what an upstream sends before the position of the state to verify is charged to the watch.
func TestWaitingIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, size = 50, 2000
		text := hello + status("catching_up", "verify what is held", "") +
			event("end_of_snapshot", `,"revision":"9","count":1,"resumed":true,"verify":true,"digest":"1-00000000000000000a0b63040ce39073"`, "")
		for i := range events {
			text += upsert("y", 10+i, `"`+strings.Repeat("x", size)+`"`, "")
		}
		_, u, stop := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) { stalls(text)(w, r) })
		defer stop()
		sink := &charged{holding: holding{&calls{}}}
		end := watches(t, sourceOf(t, u, "w"), sink)
		time.Sleep(time.Second)
		synctest.Wait()
		held := sink.now.Load()
		if held < events*size {
			t.Errorf("the sink is charged %d bytes, %d wait", held, events*size)
		}
		time.Sleep(time.Minute) // it has come back, and the same waits again
		synctest.Wait()
		if most := sink.most.Load(); most > held {
			t.Errorf("the sink was charged %d bytes at most, want %d as the first time", most, held)
		}
		end()
	})
}
