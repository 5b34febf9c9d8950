// Package extent says which bytes of an appended batch come from which segment, so that what
// is made of them once can serve all who are sent the same.
package extent
