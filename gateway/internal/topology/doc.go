// Package topology shows the way of the data through the gateway, for operators.
package topology
