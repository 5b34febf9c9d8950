// Package poll is the operating system's side of connections that the gateway took from
// net/http: writes that do not wait, and what clients do meanwhile.
package poll
