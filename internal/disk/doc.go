// Package disk keeps records in one file that outlives the process: the part of durable storage that
// does not depend on what is stored.
//
// The file is a bbolt database. [File.Update] makes a transaction: when it returns nil, the transaction
// is on the disk; when it returns an error of the disk, what is there is not known, and the file takes
// nothing more until it is opened again. One process has the file open at a time.
//
// # What is checked
//
// [Open] reads every page before the database is used, and refuses a file that is damaged, of another
// kind or format, or that others can read. Each value carries a CRC-32C over its bucket, its key and
// itself. That finds accidents. It proves nothing about who wrote the file.
//
// # Copies
//
// Beside the file PATH there is PATH.state, with the process that has the file open, and the number of
// the newest record. It is how [Open] recognizes a copy of an earlier state that was put in the place of
// the file; see [File.Restored].
package disk
