// Package changes tells what has changed in followed watches from what a stream only
// repeats: after a reset, after a reconnect, and after a restart of the process.
package changes
