// Package monotime keeps times in tables without pointers, as nanoseconds of the
// monotonic clock.
package monotime
