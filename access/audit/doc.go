// Package audit writes down who was let in, to what, and who was not: one line of JSON for
// each decision. It never has values, queries, keys or credentials.
package audit
