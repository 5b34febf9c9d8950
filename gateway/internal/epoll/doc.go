// Package epoll is the operating system's side of connections that the gateway hijacked
// from net/http: non-blocking writes, and events of the client's side.
package epoll
