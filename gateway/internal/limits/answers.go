package limits

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// AnswerWait is how long a request waits for room for its answer.
const AnswerWait = 10 * time.Second

// Answers bounds the memory of answers to unary requests, and the number of
// definitions that are evaluated at the same time.
//
// Static after construction.
type Answers struct {
	Bytes   *Budget
	Scans   *Budget // of definitions evaluated on a single resource; each takes 1, not bytes
	refused func()  // counts an answer that found no room
	retry   func() time.Duration
}

// NewAnswers returns a budget of size bytes. refused is called for each answer
// that found no room, and retry for the time after which its client may retry.
func NewAnswers(size int64, refused func(), retry func() time.Duration) *Answers {
	scans := int64(max(1, runtime.GOMAXPROCS(0)/2)) // the other processors are for streams
	return &Answers{Bytes: NewBudget(size), Scans: NewSharedBudget(scans, 1), refused: refused, retry: retry}
}

// Answer is the room in the answer budget that one unary request has for its
// answer. It is held from before the state is read until everything is written.
//
// Owned by the goroutine of the request.
type Answer struct {
	// Static after construction.
	from *Answers

	client Client
	claim  *Claim // nil: none yet
}

type answerKey struct{}

// Answer returns the answer to a client, which must be released.
func (b *Answers) Answer(to Client) *Answer { return &Answer{from: b, client: to} }

// Attach returns a context for a request of a client, and its answer, which must be
// released.
func (b *Answers) Attach(ctx context.Context, to Client) (context.Context, *Answer) {
	a := b.Answer(to)
	return context.WithValue(ctx, answerKey{}, a), a
}

// AnswerOf returns the answer of a request, or nil if nothing bounds it.
func AnswerOf(ctx context.Context) *Answer {
	a, _ := ctx.Value(answerKey{}).(*Answer)
	return a
}

// Client returns the client that the answer is for; an unknown one if nothing bounds the
// answer.
func (a *Answer) Client() Client {
	if a == nil {
		return ClientOf(netip.Addr{})
	}
	return a.client
}

// Charge charges the answer to another client. It must be called before memory is taken for the
// answer.
func (a *Answer) Charge(to Client) {
	if a != nil {
		a.client = to
	}
}

// Read calls read, which reads the content of the answer and returns its size in
// bytes, once there is room for it. If the answer is larger than expected, Read
// waits for that much room and reads again.
func (a *Answer) Read(ctx context.Context, expected int64, read func() (int64, error)) error {
	for {
		if err := a.Reserve(ctx, expected); err != nil {
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

// Reserve waits for room for n bytes, which replaces any room held before.
func (a *Answer) Reserve(ctx context.Context, n int64) error {
	if a == nil {
		return nil
	}
	a.Release()
	waits, cancel := context.WithTimeout(ctx, AnswerWait)
	defer cancel()
	claim, err := a.from.Bytes.Take(waits, a.client, n)
	if err != nil {
		return a.refusal(ctx, err)
	}
	a.claim = claim
	return nil
}

// Scan calls look, which evaluates a definition on a single resource, once there is a
// processor for it: half of them are for streams. It waits as Reserve does.
func (a *Answer) Scan(ctx context.Context, look func()) error {
	if a == nil {
		look()
		return nil
	}
	var turn *Claim
	err := a.Await(ctx, func(waits context.Context) (err error) {
		turn, err = a.from.Scans.Take(waits, a.client, 1)
		return err
	})
	if err != nil {
		return err
	}
	defer turn.Release()
	look()
	return nil
}

// Await calls take, which waits for what other requests hold until its context ends. It waits as Reserve does.
func (a *Answer) Await(ctx context.Context, take func(context.Context) error) error {
	waits, cancel := context.WithTimeout(ctx, AnswerWait)
	defer cancel()
	if err := take(waits); err != nil {
		return a.refusal(ctx, err)
	}
	return nil
}

// refusal returns the error to answer with when a wait failed.
func (a *Answer) refusal(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	a.from.refused()
	p := problem.New(http.StatusServiceUnavailable, "too many answers are on their way: there was no room for one more within %s; come back later", AnswerWait)
	p.RetryAfter = a.from.retry()
	return p
}

func (a *Answer) shrink(n int64) {
	if a != nil {
		a.claim.Shrink(n)
	}
}

// Granted reports whether there is room for the answer.
func (a *Answer) Granted() bool { return a.claim != nil }

// Release frees the room.
func (a *Answer) Release() {
	if a != nil {
		a.claim.Release()
		a.claim = nil
	}
}

// HandOver gives the claim to a goroutine that writes the answer later. It returns
// other if there is no claim.
func (a *Answer) HandOver(other *Claim) *Claim {
	if a.claim == nil {
		return other
	}
	other.Release()
	c := a.claim
	a.claim = nil
	return c
}
