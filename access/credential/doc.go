// Package credential finds out who asks, from what a request or a call carries: a static
// token or a JWT in Authorization, a ticket, the cookie of a session, or a client
// certificate. It says who somebody is, and nothing about what they may do.
package credential
