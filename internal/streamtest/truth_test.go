package streamtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// A truth that drops transactions answers as before for the rest, and not at all
// for those.
func TestTruthKeepsTheNewest(t *testing.T) {
	whole, kept := handTruth(), handTruth()
	kept.Keep(3) // 4, 5 and 6
	for revision := uint64(4); revision <= 6; revision++ {
		if got, want := kept.At("e", revision), whole.At("e", revision); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("at %d: %v, want %v", revision, got, want)
		}
	}
	if got := kept.At("e", 3); got != nil {
		t.Errorf("at 3: %v, want nothing", got)
	}
	for key, want := range map[string][]Version{
		"a": {{3, "3"}, {6, "6"}},
		"b": nil,
		"c": {{5, "5"}, {6, "7"}},
	} {
		if got := kept.Versions("e", key); !slices.Equal(got, want) {
			t.Errorf("versions of %q: %v, want %v", key, got, want)
		}
	}
}

func TestTruthForgetsOrders(t *testing.T) {
	truth := handTruth()
	truth.Begin("f", 0)
	truth.Keep(3)
	if truth.At("e", 5) == nil || truth.At("e", 4) != nil {
		t.Error("want two transactions of the order before")
	}
	truth.Keep(1)
	if truth.At("e", 6) != nil || truth.At("f", 0) == nil {
		t.Error("want the newest order alone")
	}
}

// TestTruthNow stays the same, whatever is dropped and added.
func TestTruthNow(t *testing.T) {
	truth, want := handTruth(), handTruth()
	now := truth.Now()
	truth.Append(100, log.Change{Resource: stream.Resource{Key: "a", Revision: 100, Value: []byte("100")}})
	truth.Keep(1)
	truth.Begin("f", 0)
	for revision := uint64(0); revision <= 100; revision++ {
		if got, want := now.At("e", revision), want.At("e", revision); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("at %d: %v, want %v", revision, got, want)
		}
	}
	if got, want := now.Versions("e", "a"), want.Versions("e", "a"); !slices.Equal(got, want) {
		t.Errorf("versions: %v, want %v", got, want)
	}
	if now.At("f", 0) != nil {
		t.Error("it has an order that began later")
	}
}
