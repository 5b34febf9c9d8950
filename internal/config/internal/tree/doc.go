// Package tree turns the text of a configuration file into a tree of YAML nodes, with
// advice for mistakes in the syntax.
package tree
