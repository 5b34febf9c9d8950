// Package headers reads the headers with which a request is judged before it is served: the host
// that it addresses, the page that it comes from, the headers that such a page may send, and the
// media types and codings that its client accepts. It also decides which addresses only this
// machine can reach.
package headers
