// Package netconn handles client connections below HTTP and gRPC: it bounds their
// number, enforces a minimum rate, ends those that take no bytes, and lets a client end
// its own side.
package netconn
