// Package hosts decides under which names a server may be addressed, and which
// addresses only its own machine can reach.
package hosts
