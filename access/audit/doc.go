// Package audit records who was allowed what, and who was denied it: one line of JSON for each
// decision. A line never has values, queries, keys or credentials.
package audit
