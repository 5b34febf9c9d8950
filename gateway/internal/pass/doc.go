// Package pass says how long a stream may go on, and what it may show: its credential expires
// or is revoked, and what its principal may see changes.
package pass
