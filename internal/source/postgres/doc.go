// Package postgres is a source whose upstream is a database of PostgreSQL: a watch is a table, and a
// resource is a row.
//
// The watches of an [Upstream] share one replication connection with one slot. Unless the configuration
// names it, it is temporary: the server deletes it when the connection ends, so a gateway that is down never
// makes it keep WAL. Everything that is missed in between is found by reading the table again and comparing.
//
// # A permanent slot
//
// With a permanent slot, a watch goes on from its last commit, if the slot has everything after that. Since
// all watches share the stream, it begins only once those that may go on have joined. Whether the rows are still
// those of the table as it is defined is decided by the catalog: an entry that was written by a transaction as
// new as the oldest one that the slot needs may have changed after the commit, and then the table is read again.
// For that to hold, the slot is not confirmed beyond the place at which the definition was last looked at. See
// slot.go.
//
// # A table and the changes beside it
//
// The stream of changes runs when a watch joins. The watch first registers for the changes of its
// table, which wait in a queue. It then creates a second slot, which lives for a moment: the server
// exports a snapshot with it, and names the consistent point of both. The table is read in that
// snapshot. Of the queue, the transactions whose commit record is at or after the consistent point are
// not in the snapshot, and all others are.
//
// # Revisions
//
// The revision of a change is the LSN of the commit record of its transaction, so all replicas agree on
// it, and a transaction is one commit. A row that a snapshot shows has the revision just before the
// consistent point. If the watch had the same row before, it keeps its revision.
//
// # What the server does not send
//
// An update does not send a large value that is stored out of line and has not changed. A source keeps
// the rows that it has sent and that may have such values, and takes the value from there, so that no table
// needs another replica identity than its primary key. Of other rows it keeps a hash; see kept.go.
package postgres
