// Package secrets has the commands that make secrets: static tokens, and keys.
package secrets
