// Package watch keeps named collections in step with their upstreams.
//
// A Watch is a log and its ingest: a state machine that calls the source, stages what
// it reads, commits it to the log as whole transactions, and says how fresh the state
// is. A Registry holds the watches of a process, and the templates, which make a watch when
// it is first asked for.
package watch
