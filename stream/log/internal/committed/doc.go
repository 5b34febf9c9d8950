// Package committed remembers when the entries of a log became visible: the times of its newest
// commits, as far apart as its memory allows.
package committed
