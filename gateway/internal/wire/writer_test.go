package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestWaitingWriterHoldsNothing checks that a stream has no buffer between flushes.
func TestWaitingWriterHoldsNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := NewWriter(w, r, time.Minute)
		for range 3 {
			out.Write([]byte("x"))
			if out.gathered == nil {
				t.Error("what is small is not gathered")
			}
			out.Flush()
			if out.gathered != nil || !out.armed.IsZero() || out.err != nil {
				t.Errorf("after a flush: buffer %v, deadline %v, error %v", out.gathered, out.armed, out.err)
			}
		}
		out.Write(make([]byte, gatherSmall))
		if out.gathered != nil || out.bytes != 3+gatherSmall {
			t.Errorf("what is large goes by the buffer: buffer %v, %d bytes", out.gathered, out.bytes)
		}
	}))
	defer server.Close()
	res, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	// To the end: hanging up early gives the handler an error.
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
}
