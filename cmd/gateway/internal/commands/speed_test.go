package commands

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkWatch writes a snapshot of 100,000 × 300 bytes to a pipe.
func BenchmarkWatch(b *testing.B) {
	var snapshot bytes.Buffer
	snapshot.WriteString("retry: 2000\n\nevent: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000,\"watches\":[{\"watch\":\"notes\",\"mode\":\"snapshot\"}]}\n\n")
	snapshot.WriteString("event: reset\ndata: {\"type\":\"reset\",\"watch\":\"notes\",\"reason\":\"initial\"}\n\n")
	for i := range 100_000 {
		fmt.Fprintf(&snapshot, "event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"notes\",\"key\":\"key-%06d\",\"revision\":\"%d\",\"value\":{\"pad\":\"%s\"}}\n", i, i+1, strings.Repeat("x", 288))
		if i%200 == 199 {
			fmt.Fprintf(&snapshot, "id: notes@e-%d/100000\n", i+1)
		}
		snapshot.WriteByte('\n')
	}
	snapshot.WriteString("event: end_of_snapshot\ndata: {\"type\":\"end_of_snapshot\",\"watch\":\"notes\",\"revision\":\"100000\",\"count\":100000}\nid: notes@e-100000\n\n")
	snapshot.WriteString("event: goodbye\ndata: {\"type\":\"goodbye\",\"reason\":\"complete\",\"retry_ms\":2000}\n\n")
	url := answer(b, "text/event-stream", snapshot.Bytes())
	b.SetBytes(int64(snapshot.Len()))
	b.ReportAllocs()
	for b.Loop() {
		p := process{stdout: io.Discard, stderr: io.Discard, exit: func(int) {}}
		if code := run(b.Context(), p, []string{"watch", "notes", "--server", url, "--until", "end_of_snapshot"}); code != 0 {
			b.Fatalf("exit code %d", code)
		}
	}
}

// BenchmarkGet writes a list of 100,000 × 300 bytes to a pipe.
func BenchmarkGet(b *testing.B) {
	var list bytes.Buffer
	list.WriteString(`{"watch":"notes","position":"notes@e-100000","revision":"100000","count":100000,"resources":[`)
	for i := range 100_000 {
		if i > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `{"key":"key-%06d","revision":"%d","value":{"pad":"%s"}}`, i, i+1, strings.Repeat("x", 288))
	}
	list.WriteString(`],"next_page_token":""}`)
	url := answer(b, "application/json", list.Bytes())
	b.SetBytes(int64(list.Len()))
	b.ReportAllocs()
	for b.Loop() {
		p := process{stdout: io.Discard, stderr: io.Discard, exit: func(int) {}}
		if code := run(b.Context(), p, []string{"get", "notes", "--server", url}); code != 0 {
			b.Fatalf("exit code %d", code)
		}
	}
}

// answer serves one body on loopback, whatever the request.
func answer(b *testing.B, contentType string, body []byte) (url string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	b.Cleanup(func() {
		server.Close()
		<-done
	})
	return "http://" + listener.Addr().String()
}
