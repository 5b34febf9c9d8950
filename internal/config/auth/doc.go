// Package auth is the section "auth" of the configuration: which credentials are
// accepted, and the files that they are in.
package auth
