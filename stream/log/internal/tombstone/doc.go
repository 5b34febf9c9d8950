// Package tombstone queues the deletes of a log, in the order in which they are forgotten.
package tombstone
