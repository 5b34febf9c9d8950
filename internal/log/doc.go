// Package log keeps one versioned copy of an upstream collection in revision order, and
// serves it to any number of readers: a Subscription is one reader's cursor, a Cohort is
// readers at one place that share a cursor, a Batch is one flush, a Snapshot is the state at
// one revision, a Page is a part of that.
//
// A log is written by one goroutine, the ingest of its watch, which alone has its Writer. It checks
// and orders the changes of a transaction, and publishes immutable versions through one atomic pointer.
// Everything else reads those, without a lock.
package log
