// Package tracing makes the spans of a gateway: requests and calls, snapshots that were slow,
// and commits that were slow to reach subscribers.
package tracing
