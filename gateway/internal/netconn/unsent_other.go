//go:build !linux

package netconn

import "net"

// limitUnsent does nothing here.
func limitUnsent(net.Conn) {}
