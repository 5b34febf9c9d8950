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
	for _, parameter := range []string{deletesParameter, resumeParameter} {
		t.Run(parameter, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { olderUpstream(t, parameter) }) })
	}
}

func olderUpstream(t *testing.T, parameter string) {
	refuses := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"status":400,"detail":"unknown parameter","parameter":"`+parameter+`"}`)
	}
	f, u, stop := serve(t, Config{}, refuses, stalls(primed()))
	defer stop()
	sink := holding{&calls{}}
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
		asked = append(asked, r.URL.Query().Get(parameter))
	}
	f.mu.Unlock()
	if asked[0] == "" || !slices.Equal(asked[1:], []string{""}) {
		t.Errorf("%s was %q in the requests, want it only in the first", parameter, asked)
	}
	cancel()
	<-ended
}
