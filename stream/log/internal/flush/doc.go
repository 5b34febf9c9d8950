// Package flush has the events that are sent to a subscriber at once: runs of entries of the
// log, and events of the subscriber's own.
package flush
