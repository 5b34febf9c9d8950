package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestFor checks that the time passes, and that the cause of a context's end is returned at once.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Pause(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, over)
		defer cancel()
		began = time.Now()
		if err := Pause(ctx, time.Minute); !errors.Is(err, over) || time.Since(began) != time.Second {
			t.Errorf("%v after %v, want %v after a second", err, time.Since(began), over)
		}
	})
}
