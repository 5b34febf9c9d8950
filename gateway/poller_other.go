//go:build !linux

package gateway

// systemSockets returns nil: the goroutine pump carries all streams here.
func systemSockets(*connections) sockets { return nil }
