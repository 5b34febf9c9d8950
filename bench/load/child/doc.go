// Package child runs a load.Client in a process of its own, so that what it
// costs, and what its garbage collector does, is nobody else's: Start is the end
// that gives orders, Serve the end that carries them out.
//
// Orders go over the child's standard input and output (net/rpc). A Loader's
// methods return when the order is carried out, and are for one goroutine.
package child
