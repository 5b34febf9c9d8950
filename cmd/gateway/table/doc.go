// Package table draws the resources of a watch as lines of text, for a
// terminal: one line each, with the key and the fields of the value that are
// most common, as many as fit.
//
// What comes from a resource can not move the cursor or change a colour:
// whatever is not a printable character is shown as a dot.
package table
