//go:build !linux

package gateway

import "net"

// limitUnsent does nothing here.
func limitUnsent(net.Conn) {}
