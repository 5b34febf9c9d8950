// Package parts has what property tests of parts of a watch share: the truth of a part, and
// an upstream whose resources enter and leave such parts while everything fails.
package parts
