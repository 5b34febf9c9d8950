//go:build !linux

package gateway

import "github.com/watchtide/watchtide/gateway/internal/netconn"

// systemSockets returns nil: the goroutine pump carries all streams here.
func systemSockets(*netconn.Connections) sockets { return nil }
