// Package subscribers is the list of open streams, and of those that left last, as
// operators see it.
package subscribers
