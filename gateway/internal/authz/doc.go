// Package authz is the only way from a request to a watch: it finds the watch that a request names,
// and the part of it that its principal may see. An Authorization says how long a stream may go on, and what it
// may show: its credential expires or is revoked, and what its principal may see changes.
package authz
