// Package access is the only way from a request to a watch: it finds the watch that a request
// names, and the part of it that its principal may see.
package access
