// Package filesource follows a directory of JSON and YAML files: each file is a
// resource, and what is written to the directory is seen by every subscriber.
//
// # Keys and values
//
// The key of a file is its path below the directory, with slashes and without
// the extension .json, .yaml or .yml. The value is the JSON as it is, or the
// YAML as JSON, with the order of the keys and all digits of the numbers kept.
// Files with other extensions, those whose name begins with a dot, and what
// editors put beside a file while they write it, are not looked at; nor are
// directories whose name begins with a dot.
//
// # What is wrong with a file
//
// A file that cannot be read, or not be understood, keeps the value that it had
// when it last could. Meanwhile the source says Stale, with the name of the file
// and the place of the mistake, and InSync once everything is mended. The same
// holds for a second file with the key of another (the first one stays), for
// symbolic links that lead out of the directory, and for directories that may
// not be read. A file that is gone is deleted; a directory that is gone as a
// whole is an error of Watch.
//
// # Revisions
//
// Files have no revisions, so that a sequence is counted here: one more for each
// transaction, which is all that was found changed together. Two gateways cannot
// agree on it, since each sees the changes in its own steps. So the epoch
// is random for each [Source]: a subscriber that comes from another process gets
// a reset and a snapshot, and never a wrong place in a sequence.
//
// # Following
//
// The operating system tells what was touched. That is a hint where to look and
// nothing more: the state is always what reading the directory gives. Hints are
// collected until nothing was touched for a moment, so that a burst is one
// transaction, and one file is read again for one hint. Whatever is more
// than a touched file (new, moved and deleted directories, lost
// hints, symbolic links anywhere in the tree) makes the whole directory be
// scanned, in which only files are read again that look touched. The same scan
// runs at an interval, for file systems that give no hints.
//
// Everything is read by way of [os.Root], so that no link leads out of the
// directory, not even one that is put there between two looks.
//
// # Who runs what
//
// Everything runs on the goroutine that calls Watch, except the reading of the
// operating system's hints, which is fsnotify's, and a goroutine that takes the
// errors of fsnotify. Watch waits for both.
package filesource
