// Package access has what credentials, rules and the gateway share: the [Principal] that a
// credential stands for, the [Refusal] of a credential in terms of HTTP, the [TokenTable] of the file
// of static tokens, and the audit log.
//
// A [KeyRing] encrypts values that a client keeps for the gateway. The client can neither read nor
// change them, nor use them for another purpose. All replicas with the same keys can decrypt them.
//
// The audit log has one line of JSON for each decision: who was allowed what, or was denied it. A line
// never has values, queries, keys or credentials.
//
// # Rules
//
// It says who may see and change what.
//
// A policy has roles, and rules for each watch. A principal holds a role if the role's
// condition is true for it. A rule allows the holders of its role to read, to write or to
// delete some resources. Rules can only allow, and what several rules allow adds up. Nobody can
// see a watch without rules.
//
// What a principal may read of a watch is a list of grants (see view.Params): the rules that
// apply to it, with constants in place of the principal. So principals with equal grants share
// one view. A rule about the name of the principal makes a view for each principal, whose
// resources an index finds.
//
// Conditions are expressions in CEL. In roles they are over principal.mechanism, .issuer,
// .name, .groups and .claims. The groups are sorted, without duplicates. In rules they are also
// over role.NAME, which are the values of the role, and
//
//	read    key, value, labels, revision, as in filters
//	write   key, old, new: the values before and after; null if there is none
//	delete  key, old
//
// An expression that fails, for instance because a claim is missing, allows nothing, and is
// counted. A value that is not JSON, and one in which an object has a member twice, does
// not exist for old and new, so that no expression that uses it is true.
package access
