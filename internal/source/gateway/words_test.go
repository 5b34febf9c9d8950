package gateway

import (
	"testing"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/stream"
)

// TestWordsOfTheClient: the client is a module of its own, and says what package stream says.
func TestWordsOfTheClient(t *testing.T) {
	for of, want := range map[client.EventType]stream.EventType{
		client.Hello: stream.Hello, client.Reset: stream.Reset, client.Upsert: stream.Upsert, client.Delete: stream.Delete,
		client.EndOfSnapshot: stream.EndOfSnapshot, client.Bookmark: stream.Bookmark, client.Status: stream.StatusChange, client.Goodbye: stream.Goodbye,
	} {
		if string(of) != want.String() {
			t.Errorf("the type %q: want %q", of, want)
		}
	}
	for of, want := range map[client.State]stream.State{
		client.Priming: stream.Priming, client.InSync: stream.InSync, client.Resyncing: stream.Resyncing, client.Stale: stream.Stale, client.CatchingUp: stream.CatchingUp,
	} {
		if string(of) != want.String() {
			t.Errorf("the state %q: want %q", of, want)
		}
	}
	for of, want := range map[client.Reason]stream.ResetReason{
		client.ResetInitial: stream.ResetInitial, client.ResetExpired: stream.ResetExpired, client.ResetAhead: stream.ResetAhead,
		client.ResetEpochChanged: stream.ResetEpochChanged, client.ResetInvalidPosition: stream.ResetInvalidPosition,
	} {
		if string(of) != string(want) {
			t.Errorf("the reason %q: want %q", of, want)
		}
	}
	for of, want := range map[client.Reason]stream.GoodbyeReason{
		client.GoodbyeDraining: stream.GoodbyeDraining, client.GoodbyeMaxAge: stream.GoodbyeMaxAge, client.GoodbyeOverloaded: stream.GoodbyeOverloaded,
		client.GoodbyeTokenExpired: stream.GoodbyeTokenExpired, client.GoodbyeRevoked: stream.GoodbyeRevoked,
		client.GoodbyeWatchRemoved: stream.GoodbyeWatchRemoved, client.GoodbyeWatchReplaced: stream.GoodbyeWatchReplaced, client.GoodbyeComplete: stream.GoodbyeComplete,
	} {
		if string(of) != string(want) {
			t.Errorf("the reason %q: want %q", of, want)
		}
	}
}
