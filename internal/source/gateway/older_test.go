package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// TestUpstreamThatIsOlder: one that refuses a parameter that it does not know is asked without, at once,
// and the watch is told nothing of it. The next stream, which may be one of a newer replica, asks with it again.
func TestUpstreamThatIsOlder(t *testing.T) {
	for _, c := range []struct{ says, without string }{
		{deletesParameter, deletesParameter}, {resumeParameter, resumeParameter},
		{"digest", resumeParameter}, // which was not sent
	} {
		t.Run(c.says, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { olderUpstream(t, c.says, c.without) }) })
	}
}

func olderUpstream(t *testing.T, says, parameter string) {
	refuses := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"status":400,"detail":"unknown parameter","parameter":"`+says+`"}`)
	}
	f, u, stop := serve(t, Config{}, refuses, breaks(primed()), stalls(primed()))
	defer stop()
	sink := holding{&calls{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	if err := sourceOf(t, u, "w").Watch(ctx, stream.Resume{}, sink); err == nil {
		t.Error("a stream was cut off, and there is no error")
	}
	if took := time.Since(began); took > gatherFor+100*time.Millisecond {
		t.Errorf("asked again after %v", took)
	}
	if want := strings.TrimSuffix(primedCalls, "\n"); sink.String() != want {
		t.Errorf("calls\n%s\nwant\n%s", sink, want)
	}
	ended := make(chan error, 1)
	go func() { ended <- sourceOf(t, u, "w").Watch(ctx, stream.Resume{}, holding{&calls{}}) }()
	for len(f.ids()) < 3 {
		time.Sleep(time.Millisecond)
	}
	synctest.Wait()
	f.mu.Lock()
	var asked []string
	for _, r := range f.requests {
		asked = append(asked, r.URL.Query().Get(parameter))
	}
	f.mu.Unlock()
	if len(asked) != 3 || asked[0] == "" || asked[1] != "" || asked[2] == "" {
		t.Errorf("%s was %q in the requests, want it not in the second alone", parameter, asked)
	}
	cancel()
	<-ended
}
