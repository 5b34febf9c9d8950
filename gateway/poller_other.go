//go:build !linux

package gateway

// systemSockets says that there are none here: the goroutine pump carries all
// streams.
func systemSockets(*connections) sockets { return nil }
