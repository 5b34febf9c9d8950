package access

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

// PolicyConfig is the source of a policy.
type PolicyConfig struct {
	Roles   []Role
	Watches []WatchRules
}

// Role is held by the principals for whom When is true.
type Role struct {
	Name string
	When string
	With []RoleValue
}

// RoleValue is a value that rules use as role.NAME. A principal for whom its expression fails does
// not hold the role.
type RoleValue struct {
	Name       string
	Expression string
}

// WatchRules is one watch with its rules.
type WatchRules struct {
	Name string
	// LabelsAt is as in view.Params.
	LabelsAt string
	Rules    []Rule
	// Cluster, if not nil, lets a Kubernetes cluster say who may read what; then there are no Rules.
	Cluster *ClusterResource
}

// ClusterResource is a collection of a Kubernetes cluster. Whoever may list and watch it there, in all
// namespaces or in some, may read that much of its watch.
type ClusterResource struct {
	Group, Resource string
	// Namespace is the only one that the watch has; empty: all.
	Namespace string
	// Writes means that the cluster also decides about each write, which is made in the name of the principal.
	Writes bool
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

// PolicyError is one mistake in a Config.
type PolicyError struct {
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
func (e *PolicyError) Error() string {
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

// PolicyErrors are all mistakes of a Config; never empty.
type PolicyErrors []*PolicyError

// Error returns one line for each mistake.
func (es PolicyErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}
