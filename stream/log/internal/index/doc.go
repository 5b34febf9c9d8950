// Package index maps keys to their newest entries in a log.
package index
