package access

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// subject is what the rules make of one principal.
type subject struct {
	names map[string]any           // of the principal; static after construction
	held  map[*role]map[string]any // the names for the rules of each role that it holds; static after construction

	mu      sync.Mutex
	watches map[string]*standing // guarded by mu
}

// subject returns the roles and the values of a principal, and caches them.
func (p *Policy) subject(who *Principal) *subject {
	if s, ok := p.subjects.get(who); ok {
		return s
	}
	s := &subject{names: namesOf(who), held: map[*role]map[string]any{}, watches: map[string]*standing{}}
	for _, r := range p.roles {
		names, why := r.holds(s.names)
		switch why {
		case whyHeld:
			s.held[r] = names
		case whyFalse:
		default:
			p.failures.Add(1)
		}
	}
	return p.subjects.put(who, s, subjectBytes+2*who.Size()) // which it keeps, and a copy of its claims
}

// Reasons why a role is held or not.
const (
	whyHeld  = ""
	whyFalse = "when is false"
	whyFails = "when has no result, for instance because a claim is missing"
)

// holds returns the names for the rules of a role, if it is held; otherwise the reason why it
// is not.
func (r *role) holds(names map[string]any) (given map[string]any, why string) {
	v, err := r.when.Value(names)
	switch {
	case err != nil:
		return nil, whyFails
	case v == false:
		return nil, whyFalse
	case v != true:
		return nil, "when is neither true nor false"
	}
	given = maps.Clone(names)
	for _, v := range r.with {
		if given[v.name], err = v.value.Value(names); err != nil {
			return nil, "with." + strings.TrimPrefix(v.name, "role.") + " has no value, for instance because a claim is missing"
		}
	}
	return given, whyHeld
}

// namesOf returns the names that rules use for a principal. Without a credential there is no
// name, instead of an empty one, which a resource might have too.
func namesOf(who *Principal) map[string]any {
	groups := []any{}
	for _, g := range slices.Compact(slices.Sorted(slices.Values(who.Groups))) {
		groups = append(groups, g)
	}
	claims, _ := plain(who.Claims, 0).(map[string]any)
	if claims == nil {
		claims = map[string]any{}
	}
	names := map[string]any{"principal.mechanism": who.Mechanism, "principal.groups": groups, "principal.claims": claims}
	if who.Name != "" {
		names["principal.issuer"], names["principal.name"] = who.Issuer, who.Name
	}
	return names
}

// deepestClaim is the maximum depth of claims.
const deepestClaim = 20

// dropped stands for a claim that is nothing that JSON has, is not known exactly, or is nested
// too deeply.
type dropped struct{}

// plain returns a claim as a value of expressions.
func plain(v any, depth int) any {
	if depth > deepestClaim {
		return dropped{}
	}
	switch v := v.(type) {
	case nil, bool, string, int64, uint64:
		return v
	case float64:
		return exact(v)
	case int:
		return int64(v)
	case json.Number:
		return number(v)
	case []string:
		out := make([]any, len(v))
		for i, text := range v {
			out[i] = text
		}
		return out
	case []any:
		return plainList(v, depth)
	case map[string]any:
		return plainMap(v, depth)
	}
	return dropped{}
}

// plainList drops a list with an element that cannot be used: without the element it would be
// another list.
func plainList(v []any, depth int) any {
	out := make([]any, len(v))
	for i, e := range v {
		if out[i] = plain(e, depth+1); out[i] == (dropped{}) {
			return dropped{}
		}
	}
	return out
}

// plainMap drops a map with a member that cannot be used. From the map of all claims it drops
// only the member.
func plainMap(v map[string]any, depth int) any {
	out := make(map[string]any, len(v))
	for name, member := range v {
		member = plain(member, depth+1)
		switch {
		case member != any(dropped{}):
			out[name] = member
		case depth > 0:
			return dropped{}
		}
	}
	return out
}

// number returns a number as tokens have it.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i
	}
	if f, err := strconv.ParseFloat(string(n), 64); err == nil {
		return exact(f)
	}
	return dropped{}
}

// exact drops a number that stands for several whole ones: an integer of a token that does not
// fit into 64 bits is rounded when the token is read, and would be equal to its neighbours.
func exact(f float64) any {
	if math.Abs(f) >= 1<<53 {
		return dropped{}
	}
	return f
}
