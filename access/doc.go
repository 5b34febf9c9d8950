// Package access has what credentials, rules and the gateway share: the [Principal] that a
// credential stands for, the [Refusal] of a credential in terms of HTTP, the [TokenTable] of the file
// of static tokens, and the audit log.
//
// A [KeyRing] encrypts values that a client keeps for the gateway. The client can neither read nor
// change them, nor use them for another purpose. All replicas with the same keys can decrypt them.
//
// The audit log has one line of JSON for each decision: who was allowed what, or was denied it. A line
// never has values, queries, keys or credentials.
package access
