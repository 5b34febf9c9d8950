// Package extent says which bytes of an appended batch come from which segment, so that they
// can be compressed once for all subscribers that are sent the same.
package extent
