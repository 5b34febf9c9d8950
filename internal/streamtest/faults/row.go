package faults

import (
	"fmt"
	"time"
)

// Row is the result of one fault.
type Row struct {
	// Source and Fault are names.
	Source, Fault string
	// Noticed is the time from the injection until the connection was given up, or
	// until there was a status; 0: neither happened, as after a fault that a
	// connection survives.
	Noticed time.Duration
	// Stale is the time from the injection until the status was stale; 0: it
	// was not awaited, since the upstream was not away for long.
	Stale time.Duration
	// Recovered is the time from when the upstream took a write again until the
	// status was in_sync and that write had arrived.
	Recovered time.Duration
	// Snapshots is how many complete snapshots were read from the upstream since the
	// injection. With 0 the source resumed.
	Snapshots uint64
	// Events is how many upserts and deletes were sent to the ten subscribers and a
	// witness, and Spurious how many of those events should not have been sent.
	Events, Spurious int
}

// Prefix is the beginning of the line of a row in the log of a test.
const Prefix = "reliability"

// String returns the row as `make reliability` reads it: fields between bars.
func (r Row) String() string {
	return fmt.Sprintf("%s | %s | %s | %s | %s | %s | %d | %d | %d |", Prefix, r.Source, r.Fault,
		milliseconds(r.Noticed), milliseconds(r.Stale), milliseconds(r.Recovered), r.Snapshots, r.Events, r.Spurious)
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%d ms", max(d.Round(time.Millisecond).Milliseconds(), 1))
}
