//go:build !linux

package netconn

import "net"

// mayRead reports whether a client that has ended its side of a connection may still
// read. That is not known here, so the client counts as gone.
func mayRead(net.Conn) bool { return false }
