package gateway

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// verifyHeld is the end_of_snapshot with which a watch verifies what a holding has, without an id, and the answer about its keys.
const (
	heldDigest = "1-00000000000000000a0b63040ce39073"
	heldKeys   = `{"keys":[{"key":"x","revision":"7","hash":"0a0b63040ce39073"}],"next_page_token":""}`
)

func verifyHeld(watch, id string) string {
	return eventOf(watch, "end_of_snapshot", fmt.Sprintf(`,"revision":"9","count":1,"resumed":true,"verify":true,"digest":%q`, heldDigest), id)
}

func upsertOf(watch, key string, revision int, id string) string {
	return eventOf(watch, "upsert", fmt.Sprintf(`,"key":%q,"revision":"%d","value":2`, key, revision), id)
}

// TestOthersGoOnWhileOneIsVerified: the answers about the digest of one watch are late. The other watches of the connection go on
// meanwhile, and what comes of the watch itself is handled after it was verified.
func TestOthersGoOnWhileOneIsVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		_, u, stop := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/v1/watches/v/"):
				<-late
				fallthrough
			case strings.HasSuffix(r.URL.Path, "/keys"):
				_, _ = io.WriteString(w, heldKeys)
			default:
				write(w, hello, verifyHeld("v", "v@f-9"), verifyHeld("w", "v@f-9,w@f-9"))
				time.Sleep(time.Second)
				write(w, upsertOf("v", "y", 10, "v@f-10,w@f-9"), upsertOf("w", "z", 11, "v@f-10,w@f-11"))
				<-r.Context().Done()
			}
		})
		defer stop()
		v, w := holding{&calls{}}, holding{&calls{}}
		ofV, ofW := sourceOf(t, u, "v"), sourceOf(t, u, "w")
		defer watches(t, ofV, v)()
		defer watches(t, ofW, w)()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		verified := "status resyncing verifying what is held\nreset f\nupsert \"x\" 7 1\ncommit 9\nstatus in_sync \n"
		if want := verified + "upsert \"z\" 11 2\ncommit 11"; w.String() != want {
			t.Errorf("the other watch: calls\n%s\nwant\n%s", w, want)
		}
		if want := "status resyncing verifying what is held"; v.String() != want {
			t.Errorf("while it is verified: calls\n%s\nwant\n%s", v, want)
		}
		close(late)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := verified + "upsert \"y\" 10 2\ncommit 10"; v.String() != want {
			t.Errorf("calls\n%s\nwant\n%s", v, want)
		}
	})
}

// TestVerifyingEndsWithItsRequest: the stream is lost while the digest is asked about, or Watch ends, or a reset comes. What was found out is
// of no use, and is not waited for.
func TestVerifyingEndsWithItsRequest(t *testing.T) {
	for _, c := range []struct {
		name, then string
		stall      bool
		want       string
	}{
		{"the stream is lost", "", false, "status resyncing verifying what is held\nstatus resyncing verifying what is held"},
		{"Watch ends", "", true, "status resyncing verifying what is held"},
		{"a reset", reset("w@g-0/3") + upsert("x", 3, "1", "") + endOfSnapshot(3, 1, "w@g-3"), true, "status resyncing verifying what is held\nreset g\nupsert \"x\" 3 1\ncommit 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, streams := 0, 0
				_, u, stop := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, "/events") {
						asked++
						<-r.Context().Done()
						return
					}
					streams++
					write(w, hello, verifyHeld("w", "w@f-9"))
					time.Sleep(time.Second)
					write(w, c.then)
					if !c.stall && streams == 1 {
						panic(http.ErrAbortHandler)
					}
					<-r.Context().Done()
				})
				defer stop()
				sink := holding{&calls{}}
				end := watches(t, sourceOf(t, u, "w"), sink)
				time.Sleep(4 * time.Second)
				synctest.Wait()
				if sink.String() != c.want || asked != streams {
					t.Errorf("%d requests for %d streams, calls\n%s\nwant\n%s", asked, streams, sink, c.want)
				}
				began := time.Now()
				end()
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("Watch ends after %v", took)
				}
			})
		})
	}
}

// TestWhatWaitsIsBounded: while a watch is verified, a bounded number of its events wait, and they are charged. Then the stream stands still
// until it is verified.
func TestWhatWaitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		var written atomic.Int64
		const events, size = 150, 100 << 10
		value := `"` + strings.Repeat("x", size) + `"`
		_, u, stop := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/events") {
				<-late
				_, _ = io.WriteString(w, heldKeys)
				return
			}
			write(w, hello, verifyHeld("w", "w@f-9"))
			for i := range events {
				write(w, upsert("y", 10+i, value, fmt.Sprintf("w@f-%d", 10+i)))
				written.Add(1)
			}
			<-r.Context().Done()
		})
		defer stop()
		sink := &charged{holding: holding{&calls{}}}
		end := watches(t, sourceOf(t, u, "w"), sink)
		defer end()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		most := int64(mostWaitingBytes + 3*size)
		if n, charged := written.Load(), sink.now.Load(); n*size > most || n < 10 || charged < n*size-3*size || charged > most {
			t.Errorf("%d events were written, and %d bytes are charged", n, charged)
		}
		close(late)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		made := strings.Split(sink.String(), "\n")
		if want := fmt.Sprint("commit ", 9+events); made[len(made)-1] != want || slices.Index(made, "commit 9") < 0 {
			t.Errorf("the last call is %.100s, want %s", made[len(made)-1], want)
		}
		if charged := sink.now.Load(); charged > 5*size {
			t.Errorf("%d bytes are charged although nothing waits", charged)
		}
	})
}
