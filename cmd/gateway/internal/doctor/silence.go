package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// checkStreams examines what happens to streams: how soon they begin, and what silence does
// to them.
func (e *Examination) checkStreams(ctx context.Context) {
	e.doing(helloWithin, "opening a stream of watch %q", e.watch.Name)
	g := e.greet(ctx, ask{encoding: "identity"})
	defer g.close()
	coding := g.coding()
	switch {
	case errors.Is(g.err, errCoding):
		e.problem(ctx, Compression, dontCompress, "a proxy compresses streams with %q, although the client has not asked for it", shortened(coding))
		return
	case g.err != nil:
		e.problem(ctx, Gateway, "let the proxy pass on all paths below /v1/ to the gateway", "a stream does not begin: %s", because(g.err))
		return
	case e.slow(g):
		e.buffered(ctx, g)
	default:
		e.ok(ctx, Buffering, "hello came after %v", rounded(g.took))
	}
	e.checkIncremental(ctx, g)
	if g.late {
		e.unknown(ctx, Heartbeats, "the stream cannot be read while it is buffered")
		return
	}
	if !e.slow(g) {
		e.checkCompression(ctx)
	}
	e.observe(ctx, g)
}

func (e *Examination) buffered(ctx context.Context, g *greeting) {
	const mend = "turn off the buffering of answers in the proxy: for nginx proxy_buffering off, or let it obey X-Accel-Buffering"
	switch {
	case g.late && g.stream == nil:
		e.problem(ctx, Buffering, mend, "no byte of a stream came within %v, not even its header: something waits for more", helloWithin)
	case g.late:
		e.problem(ctx, Buffering, mend, "the header of a stream came after %v, and hello, which the gateway sends at once, not within %v: something waits for more", rounded(g.header), helloWithin)
	default:
		e.problem(ctx, Buffering, mend, "hello came only after %v, and an answer takes %v: something holds bytes back", rounded(g.took), rounded(e.clock.roundTrip))
	}
}

// checkIncremental examines whether the header arrives that asks proxies not to buffer: the proxies
// that buffer may be those behind the one that drops it.
func (e *Examination) checkIncremental(ctx context.Context, g *greeting) {
	switch {
	case g.stream == nil:
		e.unknown(ctx, Incremental, "no header of a stream came")
	case g.stream.Header.Get("Incremental") == "?1":
		e.ok(ctx, Incremental, "Incremental: ?1 arrives, which asks proxies to pass on each part of a stream as it comes")
	default:
		e.problem(ctx, Incremental, "let the proxy pass on the header, or update a gateway that does not send it yet", "a stream arrives without Incremental: ?1, which tells proxies not to wait for more of it")
	}
}

// silence is what happened to a stream without events.
type silence struct {
	beats   int           // heartbeats and other bytes
	longest time.Duration // between two of them
	age     time.Duration // of the stream, at the end
	since   time.Duration // the last byte, at the end
	goodbye string        // the reason; "": there was none
	cut     error         // nil: it was open to the end
}

// observe watches a silent stream, and at the same time a long poll, which has no heartbeats.
func (e *Examination) observe(ctx context.Context, g *greeting) {
	heartbeat := time.Duration(g.hello.Heartbeat) * time.Millisecond
	if heartbeat <= 0 || heartbeat > 24*time.Hour {
		e.unknown(ctx, Heartbeats, "hello announces none")
		return
	}
	wait := e.options.Wait
	if wait == 0 {
		wait = min(max(heartbeat*5/2, MinWait), MaxWait)
	}
	e.doing(wait, "observing a silent stream, whose heartbeat is %v", heartbeat)
	polled := make(chan polling, 1)
	go func() { polled <- e.poll(ctx, wait) }()
	s := g.observe(wait)
	p := <-polled
	e.checkHeartbeats(ctx, s, heartbeat, wait)
	e.checkIdle(ctx, s, p, heartbeat)
}

// observe reads the stream for a time, and ends it.
func (g *greeting) observe(wait time.Duration) (out silence) {
	began := time.Now()
	defer time.AfterFunc(wait, g.cancel).Stop()
	for last := began; ; {
		line, err := g.stream.next()
		now := time.Now()
		out.age, out.since = now.Sub(g.stream.sent), now.Sub(last)
		if err != nil || line != "" {
			out.longest = max(out.longest, out.since)
		}
		if err != nil {
			if now.Sub(began) < wait && out.goodbye == "" {
				out.cut = err
			}
			return out
		}
		if line != "" {
			last = now
		}
		v, isEvent := eventIn(line)
		switch {
		case isEvent && v.Type == "goodbye":
			out.goodbye = shortened(v.Reason)
		case strings.HasPrefix(line, ":"), isEvent && v.Type == "bookmark":
			out.beats++
		}
	}
}

// checkHeartbeats reports whether heartbeats pass. A stream that was cut is for checkIdle.
func (e *Examination) checkHeartbeats(ctx context.Context, s silence, heartbeat, wait time.Duration) {
	const mend = "let the proxy pass on every byte of a stream at once, comments as well"
	switch {
	case s.cut != nil && s.beats == 0:
		e.unknown(ctx, Heartbeats, "the stream was cut off before one was due")
	case s.goodbye != "":
		e.unknown(ctx, Heartbeats, "the gateway has ended the stream (%s); try again", s.goodbye)
	case s.longest > heartbeat*3/2+2*time.Second && s.beats == 0:
		e.problem(ctx, Heartbeats, mend, "no heartbeat came within %v, and one is sent every %v", rounded(s.longest), heartbeat)
	case s.longest > heartbeat*3/2+2*time.Second:
		e.problem(ctx, Heartbeats, mend, "heartbeats are held back: for %v there was none, and one is sent every %v", rounded(s.longest), heartbeat)
	case s.beats == 0:
		e.unknown(ctx, Heartbeats, "one is sent every %v: want --wait %v to see it", heartbeat, heartbeat*2)
	default:
		e.ok(ctx, Heartbeats, "%d came within %v", s.beats, rounded(wait))
	}
}

// longPoll is how long a long poll waits unless it says otherwise.
const longPoll = 30 * time.Second

// checkIdle reports what ends a stream or a long poll that is silent.
func (e *Examination) checkIdle(ctx context.Context, s silence, p polling, heartbeat time.Duration) {
	const longer = "let the proxy wait longer for bytes of an answer (for nginx proxy_read_timeout, for HAProxy timeout server)"
	switch {
	case s.cut != nil && s.beats > 0:
		e.problem(ctx, Duration, "raise the limit of the proxy for the duration of an answer, or set stream.max_age below it; nothing is wrong if the gateway or the proxy was stopped", "a stream was cut off without a goodbye after %v, although heartbeats came", rounded(s.age))
	case s.cut != nil:
		e.problem(ctx, Idle, fmt.Sprintf("%s: more than the heartbeat, %v; or set stream.heartbeat below it", longer, heartbeat), "a stream was cut off after %v of silence", rounded(s.since))
	case p.cut > 0 && p.cut < longPoll:
		e.problem(ctx, Idle, longer+", or let clients wait for less", "a long poll, which waits for up to %v, was cut off after %v: %s", longPoll, rounded(p.cut), p.how)
	case p.cut > 0:
		e.ok(ctx, Idle, "answers without a byte are cut off after %v: longer than the heartbeat, %v", rounded(p.cut), heartbeat)
	case p.err != nil:
		e.unknown(ctx, Idle, "a long poll failed: %s", because(p.err))
	default:
		e.ok(ctx, Idle, "an answer without a byte was open for %v", rounded(p.longest))
	}
}
