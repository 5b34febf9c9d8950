//go:build peers

package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/bench/internal/peers"
)

// TestOthersMayFail: the failure of another server is a result; that of our own
// ends the bench.
func TestOthersMayFail(t *testing.T) {
	lost := errors.New("8 connections lost")
	b := &bench{}
	if err := b.tolerate(t.Context(), part{name: "streams"}, peers.Peer{Name: "Pushpin"}, lost); err != nil {
		t.Errorf("error %v", err)
	}
	if want := []string{"Pushpin, streams: 8 connections lost"}; !slices.Equal(b.failed, want) {
		t.Errorf("printed %q, want %q", b.failed, want)
	}
	if err := b.tolerate(t.Context(), part{}, peers.Peer{Name: "gateway, shards"}, lost); !errors.Is(err, lost) {
		t.Errorf("the gateway failed: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.tolerate(ctx, part{}, peers.Peer{Name: "Pushpin"}, lost); !errors.Is(err, lost) {
		t.Errorf("interrupted: error %v", err)
	}
}
