// Package hosts decides under which names a server may be addressed, which headers pages
// of other hosts may send, and which addresses only its own machine can reach.
package hosts
