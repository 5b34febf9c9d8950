// Package table draws the resources of a watch as lines of text, for a
// terminal: one line each, with the key and the most common fields of the
// value, as many as fit.
//
// The content of a resource cannot move the cursor or change a color:
// unprintable characters are shown as a dot.
package table
