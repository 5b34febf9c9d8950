// Package access is the only way from a request to a watch: it finds the watch, or the
// part of it, that a request may have.
package access
