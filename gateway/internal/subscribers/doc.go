// Package subscribers is the list of open streams, and of those that ended last,
// for operators.
package subscribers
