// Package postgres is a source whose upstream is a database of PostgreSQL: a watch is a table, and a
// resource is a row.
//
// The watches of an [Upstream] share one replication connection with one temporary slot. The server
// deletes such a slot when the connection ends, so a gateway that is down never makes it keep WAL.
// Everything that is missed in between is found by reading the table again and comparing.
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
// the rows that it has sent, and takes the value from there, so that no table needs another replica
// identity than its primary key.
package postgres
