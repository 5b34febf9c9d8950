// Package parameter has texts with parameters, such as orders-{region}, and with variables of
// the environment, and the rules by which values from clients are written into them.
package parameter
