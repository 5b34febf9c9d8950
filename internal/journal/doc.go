// Package journal keeps the logs of watches on a disk, so that the next process goes on where this one
// ended.
//
// The journal reads a log like any other reader, and writes what is new a moment later: no commit waits
// for it. After each transaction of the file, what the file has of a watch is the state of its log at one
// commit, or it is marked as not whole.
//
// A log that ended with its process, after the last write, is "whole": the next process makes the same
// log of it, and readers resume as after an outage of the upstream. If a process was killed, readers may have
// more than the file. Then the next process is another replica to them; see [watch.Kept].
package journal
