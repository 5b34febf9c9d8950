// Package flush has the events that are sent to a subscriber at once: runs of entries of the log, and
// events of the subscriber's own. It says which bytes of an appended batch come from which segment, so
// that they are compressed once for all subscribers that are sent the same.
package flush
