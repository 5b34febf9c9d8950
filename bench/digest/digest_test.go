package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestQuick: each figure is measured with both builds, one of which computes no digests; start checks that.
func TestQuick(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the load generator runs on Linux only")
	}
	b := &bench{plan: full().quick()}
	var err error
	if b.programs, err = build(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := b.measure(t.Context(), 300); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if b.Print(&out); strings.Count(out.String(), " × (") != 6 {
		t.Errorf("%s\nwant six ratios", out.String())
	}
	slices.Reverse(b.programs[:])
	if err := b.measure(t.Context(), 300); err == nil || !strings.Contains(err.Error(), "computes digests: false, want true") {
		t.Errorf("the other way round: error %v", err)
	}
}

// TestRatio: it is the median of the pairs, not the ratio of the medians.
func TestRatio(t *testing.T) {
	of := figures{{1, 10, 300}, {2, 10, 100}}
	if median, low, high := of.ratio(); median != 1 || low != 0.5 || high != 3 {
		t.Errorf("%v (%v…%v)", median, low, high)
	}
}

func TestAnotherSource(t *testing.T) {
	source := filepath.Join(t.TempDir(), "hash.go")
	if err := os.WriteFile(source, []byte("package digest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := withoutHashes(source, t.TempDir()); err == nil {
		t.Error("a file without the function was changed")
	}
}
