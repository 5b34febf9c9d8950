// Package netconn is what the gateway does with the connections of its clients below
// HTTP and gRPC: it bounds their number and the rate below which they are cut off, ends
// those that take no bytes, and lets a client end its own side.
package netconn
