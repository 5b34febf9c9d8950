//go:build linux && !race

package commands

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// TestUpstreamThatOutgrowsTheMemory: the process survives, and stays small; it
// serves the last state that fitted, reports the problem, and recovers. The
// race detector would take more memory than the gateway.
func TestUpstreamThatOutgrowsTheMemory(t *testing.T) {
	up := serve(t)
	value := `"` + strings.Repeat("x", 500_000) + `"`
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			up.put(fmt.Sprint("k", i), value)
		}
	}
	fill(0, 10)
	conf := file(t, "gateway.yaml", fmt.Sprintf(
		"sources: { up: { type: grpc, address: %q } }\nwatches: { notes: { source: up, memory: 40MiB } }", up.grpc))
	t.Setenv("GOMEMLIMIT", "60MiB")
	c, logs := asProcess(t, "serve", "--config", conf, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	logs.await(t, `"state":"in_sync"`)
	_, after, _ := strings.Cut(logs.await(t, `"msg":"listening"`), `"http":"`)
	address, _, _ := strings.Cut(after, `"`)
	get := func(path string) (int, string) {
		return fetch(t, http.DefaultTransport, "GET", "http://"+address+path, "")
	}

	fill(10, 300)
	logs.await(t, `"reason":"memory"`)
	if _, got := get("/v1/watches/notes"); !strings.Contains(got, `"state":"stale"`) || !strings.Contains(got, "of its memory ceiling, 40.0 MiB") {
		t.Errorf("the watch has the status %s", got)
	}
	if status, got := get("/v1/watches/notes/events"); status != 503 || !strings.Contains(got, "takes no subscribers") {
		t.Errorf("a stream: %d %s", status, got)
	}
	if status, got := get("/v1/watches/notes/resources/k3"); status != 200 || !strings.Contains(got, "xxx") {
		t.Errorf("a resource: %d %.100s", status, got)
	}
	// The program itself takes about thirty of it.
	peak := peakMemory(t, c.Process.Pid)
	t.Logf("%d MiB at most", peak>>20)
	if peak > 140<<20 {
		t.Errorf("it took %d MiB, with an upstream of 150 MB", peak>>20)
	}

	for i := 5; i < 300; i++ {
		up.remove(fmt.Sprint("k", i))
	}
	logs.awaitTimes(t, `"state":"in_sync"`, 2)
	if status, got := get("/v1/watches/notes/events?until=end_of_snapshot"); status != 200 || !strings.Contains(got, `"count":5`) {
		t.Errorf("afterwards: %d, %d bytes", status, len(got))
	}
}

// TestEmptyMemoryLimit: the runtime treats it as unset, and so does the gateway.
func TestEmptyMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "")
	var logs strings.Builder
	limitMemory(slog.New(slog.NewTextHandler(&logs, nil)))
	if got := logs.String(); strings.Contains(got, "GOMEMLIMIT") {
		t.Errorf("instead of the container's limit it took the variable's: %s", got)
	}
}

// TestStoreThatIsRewritten: the store and its watch have a copy each, and superseded values; the
// garbage that the collector leaves beside them is a small part of that.
func TestStoreThatIsRewritten(t *testing.T) {
	t.Setenv("GOGC", "")
	conf := file(t, "gateway.yaml", "sources: { s: { type: store, max_bytes: 64MiB } }\nwatches: { notes: { source: s } }")
	c, logs := asProcess(t, "serve", "--config", conf, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	_, after, _ := strings.Cut(logs.await(t, `"msg":"listening"`), `"http":"`)
	address, _, _ := strings.Cut(after, `"`)
	idle := peakMemory(t, c.Process.Pid)
	value := `"` + strings.Repeat("x", 1_000_000) + `"`
	for i := range 5 * 60 {
		url := fmt.Sprintf("http://%s/v1/watches/notes/resources/k%d", address, i%60)
		if status, body := fetch(t, http.DefaultTransport, "PUT", url, value); status >= 300 {
			t.Fatalf("PUT %s: %d %s", url, status, body)
		}
	}
	grown := peakMemory(t, c.Process.Pid) - idle
	t.Logf("grown by %d MiB, from %d", grown>>20, idle>>20)
	if grown > 290<<20 {
		t.Errorf("it has grown by %d MiB, with a store of 60 MB", grown>>20)
	}
}

// peakMemory is the most physical memory that a process has used.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), "VmHWM:")
	kilobytes, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
