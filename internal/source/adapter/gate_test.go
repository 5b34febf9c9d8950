package adapter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errClosed = errors.New("closed")

// watch is a call that takes a while to end after its context has.
func watch(g *Gate, ctx context.Context) error {
	ctx, _, leave := g.Enter(ctx)
	defer leave()
	<-ctx.Done()
	time.Sleep(time.Second)
	return context.Cause(ctx)
}

func TestCloseEndsTheCallAndWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, result := NewGate(errClosed), make(chan error, 1)
		go func() { result <- watch(g, t.Context()) }()
		synctest.Wait()
		began := time.Now()
		g.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v, the call took a second to end", took)
		}
		if err := <-result; !errors.Is(err, errClosed) {
			t.Errorf("the call ended with %v", err)
		}
		if err := watch(g, t.Context()); !errors.Is(err, errClosed) {
			t.Errorf("a call after Close ended with %v", err)
		}
		g.Close() // closing again is allowed
	})
}

func TestOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(errClosed)
		_, _, leave := g.Enter(t.Context())
		entered := false
		go func() {
			_, _, leave := g.Enter(t.Context())
			entered = true
			leave()
		}()
		time.Sleep(time.Hour)
		if entered {
			t.Error("two calls run at once")
		}
		leave()
		synctest.Wait()
		if !entered {
			t.Error("the second call never began")
		}
	})
}

func TestOtherEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(errClosed)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if err := watch(g, ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("when its context ended, the call ended with %v", err)
		}
		inner, end, leave := g.Enter(t.Context())
		end(errors.ErrUnsupported)
		if err := context.Cause(inner); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("after end, the cause is %v", err)
		}
		leave()
	})
}
