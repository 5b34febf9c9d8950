// Package parameter has texts with parameters, such as orders-{region}, and the rules by
// which values from clients are written into them.
package parameter
