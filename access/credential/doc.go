// Package credential identifies clients by their credentials: a static token or a JWT in
// Authorization, a ticket, the cookie of a session, or a client certificate. It does not decide
// what they may do.
package credential
