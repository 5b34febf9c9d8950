// Package token reads the file of static tokens. Each line has the name of a principal, and the
// hash of a token of it.
package token
