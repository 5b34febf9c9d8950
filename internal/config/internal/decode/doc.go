// Package decode reads YAML into structs by the tags of their fields, and reports every mistake with
// its place, and with advice where the syntax is wrong. It does not know what a document is about: see
// [Types] and [Kinds].
//
// Texts may have parameters, such as orders-{region}, and variables of the environment. The package has
// the rules by which values from clients are written into them.
package decode
