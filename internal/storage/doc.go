// Package storage stores the entries of a log.
//
// A [Segment] has ready-made frames in a slab, with a table that is searched without reading
// them. A [Version] is a committed state of the log, as a list of segments with what a reader
// has to know of them. It is immutable: readers search and walk it without a lock, whatever the
// log's writer does. The other types serve the writer: an [Index] maps keys to their newest
// entries, a [Compaction] makes the segments of the next version out of those of the last one,
// [Superseded] records how many bytes were superseded when, [Tombstones] are the deletes in the
// order in which they are forgotten, and [CommitTimes] are the times of the newest commits.
package storage
