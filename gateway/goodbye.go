package gateway

import (
	"math/rand/v2"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream/watch"
)

// retryHint returns when one client should come back: from half to one and a half of
// the configured time, so that clients that were sent away together do not return
// together.
func (d *deps) retryHint() time.Duration {
	return (d.retry/2 + rand.N(d.retry)).Round(time.Millisecond)
}

// drawMaxAge returns the age at which one stream ends: the configured one, plus or minus
// 10 %; 0: never.
func (d *deps) drawMaxAge() time.Duration {
	if d.maxAge < 0 {
		return 0
	}
	tenth := d.maxAge / 10
	return d.maxAge - tenth + rand.N(2*tenth+1)
}

// admit counts a stream in, or returns why it must be refused.
func (d *deps) admit(c admission.Client, watches ...*watch.Watch) (admission.Ref, *admission.Refusal) {
	names := make([]string, len(watches))
	for i, w := range watches {
		names[i] = w.Name()
		if w.Full() != nil {
			return admission.Ref{}, &admission.Refusal{Reason: admission.RefusedMemory, Watch: names[i]}
		}
	}
	return d.admission.Enter(c, names)
}

// refused counts a refusal, and returns it as a problem.
func (d *deps) refused(transport string, why *admission.Refusal) *problem.Problem {
	d.metrics.Refused(transport, why.Reason)
	return why.Problem(2 * d.retryHint())
}
