// Package hosts says which names a server may be addressed by, and which addresses
// only its own machine can reach.
package hosts
