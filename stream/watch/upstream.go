package watch

import "time"

// Upstream is the state of the connection to the upstream.
type Upstream struct {
	// Connected reports whether there is a connection that has caught up with what
	// is followed.
	Connected bool
	// Since is when Connected last changed; zero for a watch that was never
	// started.
	Since time.Time
	// Attempts is the number of attempts since then, the current one included; 0
	// while connected.
	Attempts int
	// LastError is why the last connection ended or could not be made; empty if
	// none did. It stays after the upstream is back.
	LastError string
	// LastReason is the same for the public: it reveals nothing about the upstream.
	LastReason string
	// LastErrorAt is when that was.
	LastErrorAt time.Time
	// NextAttemptAt is when the upstream is tried again; zero while it is connected or
	// tried, and for a watch that does not run.
	NextAttemptAt time.Time
}

// tried is called at the start of an attempt to reach the upstream.
func (in *ingest) tried(now time.Time) {
	if in.health.Since.IsZero() {
		in.health.Since = now
	}
	in.health.Attempts++
	in.health.NextAttemptAt = time.Time{}
	in.publishHealth()
}

// reached is called when a connection has caught up, or its upstream reports that it
// is itself not in sync.
func (in *ingest) reached() {
	if !in.health.Connected {
		in.health.Since = time.Now()
		in.peers.connected()
	}
	in.health.Connected, in.health.Attempts = true, 0
	in.publishHealth()
}

// failed is called at the end of a connection or an attempt. The next attempt comes after
// the given time.
func (in *ingest) failed(why cause, wait time.Duration) {
	now := time.Now()
	if in.health.Connected {
		in.health.Connected, in.health.Since = false, now
	}
	in.health.LastError, in.health.LastReason, in.health.LastErrorAt = why.detail, why.reason, now
	in.health.NextAttemptAt = now.Add(wait)
	in.publishHealth()
}

// publishHealth publishes a copy of the health.
func (in *ingest) publishHealth() {
	health := in.health
	in.shown.Store(&health)
}
