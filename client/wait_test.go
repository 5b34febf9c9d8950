package client

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// TestWaits: the test of the same file in web/client compares the other client.
func TestWaits(t *testing.T) {
	text, err := os.ReadFile("testdata/waits.json")
	if err != nil {
		t.Fatal(err)
	}
	var connections []struct {
		Lasted, Asked, Wait int // ms
		Goodbye             string
		Draw                float64
	}
	if err := json.Unmarshal(text, &connections); err != nil || len(connections) < 10 {
		t.Fatalf("got %d connections, %v", len(connections), err)
	}
	failures := 0
	for i, c := range connections {
		end := End{time.Duration(c.Lasted) * time.Millisecond, c.Goodbye, time.Duration(c.Asked) * time.Millisecond}
		failures = Failures(failures, end)
		got := Backoff(end, failures, c.Draw)
		if want := time.Duration(c.Wait) * time.Millisecond; got != want {
			t.Errorf("connection %d, %+v: got %v, want %v", i, c, got, want)
		}
	}
}

func TestWaitIsBounded(t *testing.T) {
	for _, failures := range []int{5, 16, 1000} {
		if got := Backoff(End{}, failures, 0.5); got != most/2 {
			t.Errorf("after %d failures: got %v, want %v", failures, got, most/2)
		}
	}
}
