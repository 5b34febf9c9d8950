// Package token reads the file of static tokens: each line names a principal, and has
// the hash of its token.
package token
