package introspection

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnswersToOperatorsAreShared by requests that arrive before one begins, and by no others.
func TestAnswersToOperatorsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 100 * time.Millisecond
		var mu sync.Mutex
		var began []time.Duration
		start := time.Now()
		serve := Shared(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			began = append(began, time.Since(start))
			n := len(began)
			mu.Unlock()
			time.Sleep(took)
			w.Header().Set("X-Of", r.URL.RawQuery)
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, n)
		})
		ask := func(query string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			serve(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x?"+query, nil))
			if w.Code != http.StatusTeapot || w.Header().Get("X-Of") != query {
				t.Errorf("%s: %d, %v", query, w.Code, w.Header())
			}
			return w
		}
		var all sync.WaitGroup
		all.Go(func() { ask("a") })
		time.Sleep(took / 2) // under way: too late to share it
		for range 100 {
			all.Go(func() {
				if got := ask("a").Body.String(); got != "2" && got != "3" {
					t.Errorf("the answer is of rendering %s", got)
				}
			})
			all.Go(func() { ask("b") })
		}
		all.Wait()
		if len(began) != 3 {
			t.Fatalf("%d renderings for three different states of two answers", len(began))
		}
		for i := range began[1:] {
			if rest := began[i+1] - began[i] - took; rest < restTimes*took {
				t.Errorf("rendering %d begins %v after the one before", i+2, rest)
			}
		}
		if began[1] > maxRest+took+time.Millisecond {
			t.Errorf("the second rendering begins after %v", began[1])
		}
	})
}

// TestSharedAnswerWithoutItsClient: one whose client has left goes on for the others, and a client
// that leaves does not wait.
func TestSharedAnswerWithoutItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := Shared(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			if r.Context().Err() != nil {
				t.Error("the rendering is cancelled")
			}
			fmt.Fprint(w, "x")
		})
		w := httptest.NewRecorder()
		serve(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		if w.Body.String() != "x" || w.Code != http.StatusOK {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}
