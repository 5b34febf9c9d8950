package gateway

import (
	"context"
	"sync"
)

// beside is what the members of a request do beside its stream. It ends with the request.
type beside struct {
	// Static after construction.
	ctx  context.Context
	stop context.CancelFunc

	running sync.WaitGroup
}

func newBeside(ctx context.Context) *beside {
	b := &beside{}
	b.ctx, b.stop = context.WithCancel(ctx)
	return b
}

// end ends what is under way, and returns once it has ended.
func (b *beside) end() {
	b.stop()
	b.running.Wait()
}
