// Package version holds the committed states of a log. A version is immutable: readers
// search and walk it without a lock, whatever the log's writer does.
package version
