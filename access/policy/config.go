// Package policy says who may see and change what.
//
// A policy has roles, and rules for each watch. A role is held by whom its condition is
// true of. A rule allows who holds its role to read, to write or to delete some resources;
// rules only allow, and several unite. A watch without rules is for nobody.
//
// What a principal may read of a watch is a list of grants (see view.Params): the rules
// that apply to it, in which the principal is replaced by constants. So principals of whom
// the rules make the same share one view, and a rule about the name of the principal makes
// one view for each that an index finds.
//
// Conditions are expressions in CEL. In roles they are over principal.mechanism, .issuer,
// .name, .groups and .claims. The groups are in order, each once. In rules they are also
// over role.NAME, which are the values that the role takes along, and
//
//	read    key, value, labels, revision, as in filters
//	write   key, old, new: the values before and after; null if there is none
//	delete  key, old
//
// An expression that fails, for instance because a claim is missing, allows nothing, and is
// counted. A value that is not JSON, and one in which an object has a member twice, does
// not exist for old and new, so that no expression that uses it is true.
package policy

import (
	"fmt"
	"strings"

	"github.com/watchtide/watchtide/stream/view"
)

// Limits of a policy.
const (
	// MaxRoles is the number of roles.
	MaxRoles = 256
	// MaxValues is the number of values that a role takes along.
	MaxValues = 32
	// MaxRules is the number of rules of a watch.
	MaxRules = view.MaxGrants
)

// Config is what a policy is made of.
type Config struct {
	Roles   []Role
	Watches []Watch
}

// Role is held by whom When is true of.
type Role struct {
	Name string
	When string
	With []Value
}

// Value is a value that rules use as role.NAME. Who has no such value does not hold the
// role.
type Value struct {
	Name       string
	Expression string
}

// Watch is one watch with its rules.
type Watch struct {
	Name string
	// LabelsAt is as in view.Params.
	LabelsAt string
	Rules    []Rule
}

// Rule allows something to whom holds a role. What is empty is not allowed.
type Rule struct {
	Role                string
	Read, Write, Delete string
	// Fields are what Read lets be seen of values; none: all.
	Fields []string
}

// Error is one mistake in a Config.
type Error struct {
	// Role is the index of a role, Watch that of a watch and Rule that of one of its
	// rules; -1: the mistake is in no such thing.
	Role, Watch, Rule int
	// Key is name, when, with.NAME, role, read, write, delete or fields; empty: the whole.
	Key string
	// In says where in an expression the mistake is; nil: it is in no expression.
	In *view.Error
	// Problem says what is wrong and what would be right.
	Problem string
}

// Error returns a sentence with the place and the problem.
func (e *Error) Error() string {
	place := fmt.Sprintf("role %d", e.Role+1)
	if e.Role < 0 {
		place = fmt.Sprintf("watch %d", e.Watch+1)
	}
	if e.Rule >= 0 {
		place += fmt.Sprintf(", rule %d", e.Rule+1)
	}
	if e.Key != "" {
		place += ", " + e.Key
	}
	return place + ": " + e.Problem
}

// Errors are all mistakes of a Config; never empty.
type Errors []*Error

// Error returns one line for each mistake.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}
