package cluster

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// errCrowded means that too many requests wait for their turn.
var errCrowded = errors.New("too many questions wait for the API server")

// gate lets a bounded number of questions in at a time, and so many per second. A bounded number of
// others wait.
//
// All methods may be called from any goroutine.
type gate struct {
	pace    *rate.Limiter
	inside  chan struct{} // has an element for each question that is asked now
	most    int64
	waiting atomic.Int64
}

func newGate(perSecond, atOnce, waiting int) *gate {
	return &gate{pace: rate.NewLimiter(rate.Limit(perSecond), max(1, perSecond/10)), inside: make(chan struct{}, atOnce), most: int64(waiting)}
}

// enter waits for a turn. Without an error, the caller must call leave.
func (g *gate) enter(ctx context.Context) error {
	if g.waiting.Add(1) > g.most {
		g.waiting.Add(-1)
		return errCrowded
	}
	defer g.waiting.Add(-1)
	select {
	case g.inside <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := g.pace.Wait(ctx); err != nil {
		<-g.inside
		return err
	}
	return nil
}

func (g *gate) leave() { <-g.inside }

// load returns how many questions are asked now.
func (g *gate) load() int { return len(g.inside) }
