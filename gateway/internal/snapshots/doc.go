// Package snapshots bounds the bytes of snapshots and long catch-ups that are on their
// way to clients at the same time, and decides which stream comes next.
package snapshots
