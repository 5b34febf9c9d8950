// Package files follows a directory of JSON and YAML files: each file is a
// resource, and every subscriber sees each change of the directory.
//
// # Keys and values
//
// The key of a file is its path below the directory, with slashes and without the
// extension .json, .yaml or .yml. The value is the JSON as it is, or the YAML as
// JSON, with the order of the keys and all digits of the numbers kept. Ignored are
// files with other extensions, those whose name begins with a dot, and temporary
// files of editors; so are directories whose name begins with a dot.
//
// # Invalid files
//
// A file that cannot be read or parsed, or that has a key twice, keeps its last valid value. Meanwhile the
// source reports Stale, with the name of the file and the place of the mistake, and
// InSync once everything is fixed. The same holds for a second file with the key of
// another (the first one stays), for symbolic links that lead out of the directory,
// and for directories that may not be read. A file that is gone is deleted; a
// directory that is gone as a whole is an error of Watch.
//
// # Revisions
//
// Files have no revisions, so a sequence is counted here: it increases by one with
// each transaction, which is all changes that were found together. Two gateways
// cannot agree on it, since each sees the changes in its own steps. So the epoch is
// random for each [Source]: a subscriber that comes from another process gets a
// reset and a snapshot, and never resumes at a wrong position.
//
// # Following
//
// The operating system reports changed names. These are only hints where to look:
// the state is always the result of reading the directory. Hints are collected
// until nothing was touched for a moment, so that a burst is one transaction, and
// one file is read again for one hint. Anything more than a touched file (new,
// moved and deleted directories, lost hints, symbolic links anywhere in the tree)
// causes a scan of the whole directory, in which only files that look touched are
// read again. The same scan runs at an interval, for file systems that give no
// hints.
//
// Everything is read through [os.Root], so that no link leads out of the directory,
// not even one that is put there between two scans.
//
// # Goroutines
//
// Everything runs on the goroutine that calls Watch, except the reading of the
// operating system's hints, which is fsnotify's, and a goroutine that receives the
// errors of fsnotify. Watch waits for both.
package files
