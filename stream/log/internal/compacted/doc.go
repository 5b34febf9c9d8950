// Package compacted makes the segments of the next version of a log out of those of the last one.
package compacted
