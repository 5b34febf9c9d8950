// Package seal makes values that a client carries for this gateway: it can neither read
// nor change them, nor use them for another purpose. All replicas with the same keys
// understand them.
package seal
