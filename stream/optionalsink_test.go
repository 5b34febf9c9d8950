package stream

import (
	"errors"
	"testing"
)

// bare is a Sink that has nothing but the methods of one.
type bare struct{ Sink }

// TestHorizonNeedsASinkThatKeepsIt: without one, the next connection must begin with
// a snapshot.
func TestHorizonNeedsASinkThatKeepsIt(t *testing.T) {
	if err := RaiseHorizon(bare{}, 7); !errors.Is(err, ErrUnresumable) {
		t.Errorf("got %v, want %v", err, ErrUnresumable)
	}
}
