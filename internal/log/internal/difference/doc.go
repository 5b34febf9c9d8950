// Package difference computes the events that lead a reader from the state of one part of a log
// to that of another part. They are computed once, and shared by all readers that switch in the
// same way.
package difference
