// Package child runs a load.Client in a process of its own, so that its cost,
// and its garbage collector's, affect nothing else: Start is the end that sends
// orders, Serve the end that executes them.
//
// Orders go over the child's standard input and output (net/rpc). A Loader's
// methods return when the order is executed, and are for one goroutine.
package child
