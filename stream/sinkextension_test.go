package stream

import (
	"errors"
	"testing"
)

// TestPlainSinkRemembersNothing: the next connection must begin with a snapshot.
func TestPlainSinkRemembersNothing(t *testing.T) {
	if err := (PlainSink{}).RaiseHorizon(7); !errors.Is(err, ErrUnresumable) {
		t.Errorf("got %v, want %v", err, ErrUnresumable)
	}
	if (PlainSink{}).Rewind() == nil {
		t.Error("it can forget half a transaction")
	}
}
