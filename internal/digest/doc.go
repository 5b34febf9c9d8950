// Package digest computes the digest of a state: a number that two states have in common if they
// hold the same keys with the same values, whatever their revisions are. A replica, a gateway
// that follows another one, and a client that has resumed can so tell that they hold the same.
//
// The digest of a state is the number of its resources and the sum of their hashes. A sum needs
// no order, and a commit changes it by what the commit changes. Where two digests differ, a
// [Table] tells which keys may differ.
//
// A digest finds accidents. It does not withstand a writer that makes collisions on purpose:
// nothing may be decided by a digest that an attacker would gain from. docs/protocol.md has the
// definition and test vectors, for clients in other languages.
package digest
