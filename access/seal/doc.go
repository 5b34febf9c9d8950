// Package seal encrypts values that a client keeps for this gateway. The client can neither
// read nor change them, nor use them for another purpose. All replicas with the same keys can
// decrypt them.
package seal
