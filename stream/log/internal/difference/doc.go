// Package difference finds what a reader who has the state of one part of a log must be sent
// to have that of another part: made once, and shared by all who go the same way.
package difference
