package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
)

// answerWait is how long a request waits for room for its answer.
const answerWait = 10 * time.Second

// answer is the room in Config.AnswerBudget that one unary request has for its
// answer. It is held from before the state is read until everything is written.
//
// Owned by the goroutine of the request.
type answer struct {
	// Static after construction.
	gateway *Gateway
	client  admission.Client

	claim *claim // nil: none yet
}

type answerKey struct{}

// withAnswer returns a context for a request of a client, and its answer, which must
// be released.
func (g *Gateway) withAnswer(ctx context.Context, of admission.Client) (context.Context, *answer) {
	a := &answer{gateway: g, client: of}
	return context.WithValue(ctx, answerKey{}, a), a
}

// answerOf returns the answer of a request, or nil if nothing bounds it.
func answerOf(ctx context.Context) *answer {
	a, _ := ctx.Value(answerKey{}).(*answer)
	return a
}

// hold reads the content of the answer once there is room for it. read returns the
// size of the answer in bytes. If that is more than expected, hold waits for that
// much room and reads again.
func (a *answer) hold(ctx context.Context, expected int64, read func() (int64, error)) error {
	for {
		if err := a.reserve(ctx, expected); err != nil {
			return err
		}
		got, err := read()
		if err != nil {
			return err
		}
		if got <= expected {
			a.shrink(got)
			return nil
		}
		expected = got
	}
}

// reserve waits for room for n bytes, which replaces any room held before.
func (a *answer) reserve(ctx context.Context, n int64) error {
	if a == nil {
		return nil
	}
	a.release()
	waits, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	claim, err := a.gateway.answers.take(waits, a.client, n)
	if err != nil {
		return a.refusal(ctx, err)
	}
	a.claim = claim
	return nil
}

// scan calls look, which examines every resource of a watch, once there is a
// processor for it: half of them are for streams. It waits as reserve does.
func (a *answer) scan(ctx context.Context, look func()) error {
	if a == nil {
		look()
		return nil
	}
	waits, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	turn, err := a.gateway.scans.take(waits, a.client, 1)
	if err != nil {
		return a.refusal(ctx, err)
	}
	defer turn.release()
	look()
	return nil
}

// refusal returns the error to answer with when a wait failed.
func (a *answer) refusal(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	a.gateway.metrics.answerRefused()
	p := problem.New(http.StatusServiceUnavailable, "too many answers are on their way: there was no room for one more within %s; come back later", answerWait)
	p.RetryAfter = a.gateway.deps.retryHint()
	return p
}

func (a *answer) shrink(n int64) {
	if a != nil {
		a.claim.shrink(n)
	}
}

// release gives the room back.
func (a *answer) release() {
	if a != nil {
		a.claim.release()
		a.claim = nil
	}
}

// handOver gives the claim to a goroutine that writes the answer later. It returns
// other if there is no claim.
func (a *answer) handOver(other *claim) *claim {
	if a.claim == nil {
		return other
	}
	other.release()
	c := a.claim
	a.claim = nil
	return c
}

const (
	// pageBytes is the most bytes of keys and values in a page, unless its only
	// resource has more.
	pageBytes = 3 << 20
	// resourceBytes is what a resource takes in an answer besides its key and its
	// value.
	resourceBytes = 256
	// watchBytes is what one watch takes in the list of watches.
	watchBytes = 1 << 10
)

// expectedPage is the most bytes that a page of a watch takes, except for large
// resources.
func expectedPage(v log.View, size int) int64 {
	return min(pageBytes, v.Bytes()) + resourceBytes*int64(min(size, v.Count()))
}

func bytesOfPage(p log.Page) int64 {
	n := int64(0)
	for i := range p.Resources {
		n += bytesOfResource(p.Resources[i])
	}
	return n
}

func bytesOfResource(r stream.Resource) int64 {
	return resourceBytes + int64(len(r.Key)+len(r.Value))
}
