//go:build !linux

package epoll

import "github.com/watchtide/watchtide/gateway/internal/netconn"

// SystemSockets returns nil: the goroutine pump carries all streams here.
func SystemSockets(*netconn.Connections) Sockets { return nil }
