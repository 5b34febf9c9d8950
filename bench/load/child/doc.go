// Package child runs a load.Client in a process of its own, so that its cost,
// and its garbage collector's, affect nothing else: Start is the end that gives
// orders, Serve the end that carries them out.
//
// Orders go over the child's standard input and output (net/rpc). A Loader's
// methods return when the order is carried out, and are for one goroutine.
package child
