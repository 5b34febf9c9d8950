// Package policy says who may see and change what.
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
package policy

import (
	"fmt"
	"strings"

	"github.com/watchtide/watchtide/internal/view"
)

// Limits of a policy.
const (
	// MaxRoles is the maximum number of roles.
	MaxRoles = 256
	// MaxValues is the maximum number of values of a role.
	MaxValues = 32
	// MaxRules is the maximum number of rules of a watch.
	MaxRules = view.MaxGrants
)

// Config is the source of a policy.
type Config struct {
	Roles   []Role
	Watches []Watch
}

// Role is held by the principals for whom When is true.
type Role struct {
	Name string
	When string
	With []Value
}

// Value is a value that rules use as role.NAME. A principal for whom its expression fails does
// not hold the role.
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

// Rule allows something to the holders of a role. An empty condition allows nothing.
type Rule struct {
	Role                string
	Read, Write, Delete string
	// Fields are the paths of values that the rule allows to be read; none: all.
	Fields []string
	// Except are the paths of what the rule leaves out of that.
	Except []string
}

// Error is one mistake in a Config.
type Error struct {
	// Role is the index of a role, Watch that of a watch and Rule that of one of its
	// rules; -1: the mistake is in no such thing.
	Role, Watch, Rule int
	// Key is name, when, with.NAME, role, read, write, delete, fields or except; empty: the mistake is
	// in the whole.
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
