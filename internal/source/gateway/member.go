package gateway

import (
	"context"
	"sync"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/stream"
)

// member is one running Watch call, on a connection that may be shared.
type member struct {
	// Static after construction.
	source *Source
	alone  bool          // does not share its connection
	ended  chan struct{} // closed by end

	mu     sync.Mutex // guards the following field; held during calls of the sink
	reader *reader    // nil: it has ended

	// Written before ended is closed, read after.
	err error // what Watch returns
	own bool  // caused by this watch alone
}

// receive handles one event of the watch. If no more may wait for a verification, it returns once that is over.
func (m *member) receive(e client.Event) {
	if full := m.received(e); full != nil {
		<-full
	}
}

// received handles one event. It returns what ends before another one may come; nil: that may come at once.
func (m *member) received(e client.Event) (full <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reader == nil {
		return nil
	}
	if err := m.reader.receive(e); err != nil {
		m.endLocked(err, true)
		return nil
	}
	m.verifyLocked()
	return m.reader.waiting.full(m.reader.Sink)
}

// verifyLocked begins a verification that is due. It takes as long as some requests, and the watches share a stream: so it is
// beside that. m.mu is held.
func (m *member) verifyLocked() {
	v, beside := m.reader.waiting.verification, m.reader.beside
	if v == nil || v.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(beside.ctx)
	v.cancel = cancel
	beside.running.Go(func() {
		defer close(v.done)
		defer cancel()
		found, err := v.differs(ctx)
		m.verified(ctx, v, found, err)
	})
}

// verified handles the outcome of a verification, and the events that have waited for it.
func (m *member) verified(ctx context.Context, v *verification, found client.Difference, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reader == nil || m.reader.waiting.verification != v || err != nil && ctx.Err() != nil {
		return // it was given up, or the next request begins where this one did
	}
	if err := m.reader.verified(v, found, err); err != nil {
		m.endLocked(err, true)
		return
	}
	m.verifyLocked() // the next one, if one of the events was about that
}

// largest is how many bytes an event may have for this watch.
func (m *member) largest(own int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reader == nil {
		return 0
	}
	return stream.LargestMessage(m.reader.Sink, own)
}

// hold counts bytes towards the memory of the watch.
func (m *member) hold(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reader != nil {
		m.reader.Sink.Charge(bytes)
	}
}

// refuse ends the watch as one that does not fit into its memory.
func (m *member) refuse(largest int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reader != nil {
		stream.RefuseMessage(m.reader.Sink, largest)
	}
}

// begins records the start of a request, and returns the position at which this
// watch resumes; false: at none.
func (m *member) begins(beside *beside) (p stream.Position, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reader == nil {
		return p, false
	}
	m.reader.changed, m.reader.beside = false, beside
	m.reader.waiting.forget(m.reader.Sink)
	p, ok, err := m.reader.Begin()
	if err != nil {
		m.endLocked(err, false)
		return p, ok
	}
	if ok && m.reader.source.repairs.differing && !p.Partial() {
		p = unknownPosition(p.Watch)
	}
	return p, ok
}

// end ends the call; there is no call of its sink afterwards. Only the
// first end counts.
func (m *member) end(err error, own bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reader != nil {
		m.endLocked(err, own)
	}
}

func (m *member) endLocked(err error, own bool) {
	m.reader.waiting.forget(m.reader.Sink)
	m.reader, m.err, m.own = nil, err, own
	close(m.ended)
}
