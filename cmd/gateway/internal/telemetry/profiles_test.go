package telemetry

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"golang.org/x/exp/trace"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// A copy of the recorder is a trace that go tool trace reads, and the recorder goes on.
func TestFlightRecorder(t *testing.T) {
	r, err := Record()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	for range 2 {
		w := get(t, Handler(r), "/debug/pprof/flight")
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		events, err := trace.NewReader(bytes.NewReader(w.Body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; err == nil; n++ {
			_, err = events.ReadEvent()
		}
		if err != io.EOF || n < 10 {
			t.Errorf("%d events, then %v", n, err)
		}
	}
}

// One copy is made at a time.
func TestOneCopyAtATime(t *testing.T) {
	r, err := Record()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	r.busy.Lock()
	if w := get(t, Handler(r), "/debug/pprof/flight"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r.busy.Unlock()
	if w := get(t, Handler(r), "/debug/pprof/flight"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Without a recorder the answer says how to get one, and the profiles are there.
func TestNoFlightRecorder(t *testing.T) {
	h := Handler(nil)
	if w := get(t, h, "/debug/pprof/flight"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "operations.flight_recorder: true") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := get(t, h, "/debug/pprof/goroutine?debug=1"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Nothing lasts longer than a minute.
func TestProfilesAreShort(t *testing.T) {
	h := Handler(nil)
	for _, kind := range []string{"profile", "trace", "heap", "goroutine"} {
		for _, seconds := range []string{"61", "3600", "1e9", "60.5", "inf", "nan"} {
			if w := get(t, h, "/debug/pprof/"+kind+"?seconds="+seconds); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "at most 60") {
				t.Errorf("%s of %s seconds: %d %.100s", kind, seconds, w.Code, w.Body)
			}
		}
	}
	if w := get(t, h, "/debug/pprof/goroutine?debug=1"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Few are made at a time.
func TestProfilesAtOnce(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	h := bounded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { began <- struct{}{}; <-end }))
	var served sync.WaitGroup
	for range mostAtOnce {
		served.Go(func() { get(t, h, "/debug/pprof/heap?gc=1") })
		<-began
	}
	if w := get(t, h, "/debug/pprof/heap?gc=1"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
	close(end)
	served.Wait()
}
