// Package view says what a view is, and which views a change concerns.
//
// A view is a watch narrowed by a Definition: by a prefix of the key, a label selector, a
// filter over the resource, and the fields of the value to keep. A definition is
// canonical: two that were written differently and mean the same by their form have the
// same ID, and two that differ never do.
//
// # Filters
//
// A filter is an expression in CEL over key, value, labels and revision. A member of the
// value that is absent has no value, so that value.x != 1 is not true without x; has(value.x)
// tells. Numbers without a fraction and an exponent are int, or uint beyond 2^63, others
// double; they compare with one another, so that 1e2 == 100. A value that is not JSON
// (see stream.Resource.Encoding) does not exist for the filter.
//
// If an object on the way of a path that the filter names has the next name of that path
// twice, or if anything at its end has an object with a name twice, then the filter does
// not match, whatever else it says. The same goes for the labels, and what selects by
// them.
//
// # Labels
//
// The labels of a resource are the members of one object in its value that are strings;
// others are ignored, as 1 is not "1". Without that object there are no labels.
package view

import "github.com/watchtide/watchtide/internal/view/internal/predicate"

// Limits of a definition.
const (
	// MaxText is the length of each parameter, in bytes: of what was given, and of its
	// canonical form.
	MaxText = 2 << 10
	// MaxFields is the number of fields to keep.
	MaxFields = 64
	// MaxNames is the number of names in one path.
	MaxNames = 32
	// MaxRequirements is the number of requirements of a label selector.
	MaxRequirements = 32
	// DefaultValueSize is the size of the largest values for which filters are admitted,
	// in bytes.
	DefaultValueSize = 1 << 20
)

// Limits of a filter.
const (
	MaxFilterDepth      = predicate.MaxDepth      // how deep it is nested
	MaxFilterNodes      = predicate.MaxNodes      // operands and operators
	MaxPattern          = predicate.MaxPattern    // instructions of a regular expression
	FilterEstimateLimit = predicate.EstimateLimit // estimated cost of one evaluation, of about 100 ns each
	FilterCostLimit     = predicate.CostLimit     // cost of the steps of macros at which an evaluation is given up
	FilterWorkLimit     = predicate.WorkLimit     // cost of what is read, made and searched, at which it is given up
)
