// Package hook runs a command for each change of followed watches, at least once, and
// remembers in a file what it was run for.
package hook
