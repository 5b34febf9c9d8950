// Package decode reads YAML into structs by the tags of their fields, and reports every
// mistake with its place. It does not know what a document is about: see Types and Kinds.
package decode
