// Package introspection has what operators see of a gateway: the open streams, and those that ended
// last, how the data goes through the gateway, an hour of figures of each watch, the other replicas
// that the configuration names, and the reports in which browsers say when they have painted changes.
//
// [Operators] answers the requests for these.
//
// A [Tally] is added to without a lock. Once a second a [Recorder] reads all tallies and watches, and
// adds a sample to the hour of each.
//
// Tables keep times without pointers, as nanoseconds of the monotonic clock: see [Nanos].
package introspection
