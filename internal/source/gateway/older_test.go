package gateway

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// TestUpstreamThatIsOlder: one that refuses a parameter that it does not know is asked without, at once,
// and the watch is told nothing of it.
func TestUpstreamThatIsOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"status":400,"detail":"unknown parameter deletes","parameter":"deletes"}`)
		}
		f, u, stop := serve(t, Config{}, refuses, stalls(primed()))
		defer stop()
		sink := &calls{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		began := time.Now()
		go func() { ended <- sourceOf(t, u, "w").Watch(ctx, stream.Resume{}, sink) }()
		for len(f.ids()) < 2 {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if took := time.Since(began); took > gatherFor+100*time.Millisecond {
			t.Errorf("asked again after %v", took)
		}
		if want := strings.TrimSuffix(primedCalls, "\n"); sink.String() != want {
			t.Errorf("calls\n%s\nwant\n%s", sink, want)
		}
		f.mu.Lock()
		var asked []string
		for _, r := range f.requests {
			asked = append(asked, r.URL.Query().Get("deletes"))
		}
		f.mu.Unlock()
		if !slices.Equal(asked, []string{"1", ""}) {
			t.Errorf("deletes was %q in the requests, want it only in the first", asked)
		}
		cancel()
		<-ended
	})
}
