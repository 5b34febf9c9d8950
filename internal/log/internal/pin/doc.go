// Package pin counts and limits the memory that readers of older versions of a log hold.
package pin
