package watch

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// healthyAfter is how long a connection must have been caught up for the back-off
// to start again from its minimum. A shorter one may be part of the same outage.
const healthyAfter = 10 * time.Second

// onEnded is called at the end of a connection.
func (in *ingest) onEnded(err error) {
	in.reader.cancel(errStopped)
	in.reader.sink.release()
	err = in.noteTooLarge(err)
	in.endResync(err)
	in.reader = nil
	in.progress.stop()
	in.settling.timer.stop() // what the upstream said is void
	in.setLostAt(time.Now())
	reason := reconnectReason(err)
	in.count.reconnects.add(reason, 1)
	in.startOver = in.startOver || reason == "order" || reason == "behind" || reason == "unresumable" || reason == "memory"
	if in.health.Connected && time.Since(in.health.Since) >= healthyAfter {
		in.failures = 0
	}
	in.failures++
	wait := in.config.Backoff.Wait(in.failures, rand.Float64())
	if reason == "memory" {
		wait *= memoryPatience
	}
	in.lastError = cause{reasons[reason], reasons["ended"]}
	if err != nil {
		in.lastError.detail = in.upstreamText(err.Error())
	}
	in.failed(in.lastError, wait)
	in.recordIncident(IncidentReconnect, reason, in.lastError.detail)
	in.logger.Warn("upstream lost", "reason", reason, "error", in.lastError.detail, "retry_in", wait.Round(time.Millisecond).String())
	in.retry.start(wait)
	if unreachable(reason) {
		in.peerBack = in.peers.next()
	}
	switch state := in.log.Status().State; {
	case state == stream.InSync && reason != "memory":
		// An upstream that is back at once is not worth a status. One that comes and
		// goes is: the timer is not postponed.
		if !in.stale.set() {
			in.stale.start(in.config.StaleAfter)
		}
	case state == stream.Priming:
		in.setStatus(stream.Priming, in.lastError)
	default:
		in.setLost()
	}
}

// behindTooLong reports whether the upstream has been behind for too long: a replica
// that lags catches up, a restored upstream does not.
func (in *ingest) behindTooLong(err error) bool {
	if in.behind.IsZero() {
		in.behind = time.Now()
	}
	if time.Since(in.behind) >= in.config.BehindTimeout {
		return true
	}
	in.lastError = cause{reasons["behind"], in.upstreamText(err.Error())}
	in.setLostAt(time.Now())
	in.setStatus(stream.Stale, in.lastError)
	return false
}

func resyncReason(primed, reset bool) string {
	switch {
	case !primed:
		return "initial"
	case reset:
		return "epoch_changed"
	default:
		return "reconnect"
	}
}

func reconnectReason(err error) string {
	switch {
	case err == nil:
		return "ended"
	case errors.Is(err, memory.ErrExceeded):
		return "memory"
	case errors.Is(err, stream.ErrStalled):
		return "stalled"
	case errors.Is(err, stream.ErrInvalid):
		return "invalid"
	case errors.Is(err, stream.ErrOrder):
		return "order"
	case errors.Is(err, stream.ErrBehind):
		return "behind"
	case errors.Is(err, stream.ErrUnresumable):
		return "unresumable"
	default:
		return "error"
	}
}
