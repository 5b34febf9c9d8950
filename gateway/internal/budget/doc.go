// Package budget bounds the memory that requests take, in all and for each client:
// the bodies of writes, and the answers to everything that is not a stream.
package budget
