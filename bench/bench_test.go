package main

import (
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFirstByte: each commit arrives on its own, after it was made.
func TestFirstByte(t *testing.T) {
	rows, err := measureFirstByte(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Log(r.what, r.seen)
		if len(r.seen) != 1 || r.seen[0] <= 0 {
			t.Errorf("%s: %v, want one time", r.what, r.seen)
		}
	}
}

// TestCurl: a snapshot and a resume, both complete.
func TestCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	rows, err := measureCurl(1)
	if err != nil {
		t.Fatal(err)
	}
	if resumed := rows[1]; !resumed.ok(resumed.seen[0]) {
		t.Errorf("%s: %v", resumed.what, resumed.seen)
	}
}
