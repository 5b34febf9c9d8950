package child

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// serving, in the environment, turns the test into the load generator.
const serving = "WATCHTIDE_TEST_LOADER"

func TestMain(m *testing.M) {
	if os.Getenv(serving) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// events sends three events and stays open. The ids continue after the last
// one.
func events(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Last-Event-ID") + "."
	for range 3 {
		fmt.Fprintf(w, "event: upsert\ndata: {\"at\":%d,\"pad\":\"\"}\nid: %s\n\n", time.Now().UnixNano(), id)
		http.NewResponseController(w).Flush()
	}
	<-r.Context().Done()
}

// TestCommands sends each command once.
func TestCommands(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(events))
	defer server.Close()
	t.Setenv(serving, "1")
	l, err := Start(t.Context(), os.Args[0], Options{
		Address: server.Listener.Addr().String(), Marker: []byte("\nevent: upsert\n"), Done: []byte("\nid: "),
		Sample: 2, IDs: true, Keep: 15,
	})
	if err != nil {
		t.Fatal(err)
	}
	request := load.Request{Bytes: []byte("GET / HTTP/1.1\r\nHost: test\r\n\r\n"), Held: true}
	must(t, l.Open(4, request))
	if s := stats(t, l); s.Connected != 4 || s.Bytes != 0 {
		t.Errorf("%+v: want 4 connected, and nothing sent", s)
	}
	must(t, l.Release())
	awaitEvents(t, l, 12)
	latency, err := l.Latency()
	if must(t, err); latency.Count != 6 || latency.P50 > latency.P99 || latency.P99 > latency.Max {
		t.Errorf("%+v: want 6, of every other connection", latency)
	}
	times, err := l.Times()
	if must(t, err); times.Count != 4 || times.Median <= 0 || times.Max < times.Median {
		t.Errorf("%+v: want 4", times)
	}
	if kept, err := l.Kept(); err != nil || string(kept) != "HTTP/1.1 200 OK" {
		t.Errorf("kept %q, %v", kept, err)
	}
	must(t, l.HangupAll())
	request.Held = false
	must(t, l.Reopen(request))
	awaitEvents(t, l, 24)
	if id, err := l.LastID(3); err != nil || id != ".." {
		t.Errorf("last ID %q, %v: want one that continues after the first", id, err)
	}
	counts, err := l.Events()
	if must(t, err); fmt.Sprint(counts) != "[6 6 6 6]" {
		t.Errorf("%v events, want 6 each", counts)
	}
	request.Held = true
	must(t, l.OpenEach([]load.Request{request, request}))
	if s := stats(t, l); s.Connected != 10 {
		t.Errorf("%+v: want two more connected, which are 10 in all", s)
	}
	must(t, l.Stop())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stats(t *testing.T, l *Loader) load.Stats {
	t.Helper()
	s, err := l.Stats()
	must(t, err)
	return s
}

func awaitEvents(t *testing.T, l *Loader, want uint64) {
	t.Helper()
	for began := time.Now(); stats(t, l).Events < want; {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%+v: want %d events", stats(t, l), want)
		}
	}
}

// TestErrorsAreReturned: an error in the child is reported here.
func TestErrorsAreReturned(t *testing.T) {
	t.Setenv(serving, "1")
	if l, err := Start(t.Context(), os.Args[0], Options{Address: "nonsense"}); err == nil {
		l.Stop()
		t.Error("no error for an invalid address")
	}
}
