package problem

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/suggest"
)

// Query reads the query of a request, which may contain each of the known
// parameters once and nothing else. The error names the parameter, and the most
// similar known one.
func Query(r *http.Request, known ...string) (url.Values, *Problem) {
	return ParseQuery(r.URL.RawQuery, Parameters{Once: known})
}

// Parameters are the parameters that a query may have. One that ends in a dot is
// followed by any name.
type Parameters struct {
	Once     []string // at most once each
	Repeated []string // any number of times
	Foreign  []string // other names that clients add by themselves, any number of times; never suggested
	// Hints are what to say of names that a query may not have; without the dot and what is behind it.
	Hints map[string]string
}

// knows reports whether a query may have the parameter.
func (p Parameters) knows(name string) bool { return among(p.Once, name) || p.repeats(name) }

// repeats reports whether a query may have the parameter more than once.
func (p Parameters) repeats(name string) bool {
	return among(p.Repeated, name) || among(p.Foreign, name)
}

// among reports whether a parameter is one of some.
func among(some []string, name string) bool {
	base, _, dotted := strings.Cut(name, ".")
	return slices.Contains(some, name) || dotted && slices.Contains(some, base+".")
}

// names returns the parameters to suggest, without those that end in a dot.
func (p Parameters) names() []string {
	return slices.DeleteFunc(slices.Concat(p.Repeated, p.Once), func(name string) bool { return strings.HasSuffix(name, ".") })
}

// ParseQuery is Query for any parameters.
func ParseQuery(query string, known Parameters) (url.Values, *Problem) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, BadParameter("query", "the query of the URL cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) { // so that several mistakes always get the same answer
		if name == "" {
			return nil, BadParameter("query", "the query of the URL has a value without the name of a parameter")
		}
		if !known.knows(name) {
			return nil, refusedParameter(name, known)
		}
		if n := len(values[name]); n > 1 && !known.repeats(name) {
			return nil, BadParameter(name, "parameter %q is given %d times: want it once", name, n)
		}
	}
	return values, nil
}

func refusedParameter(name string, p Parameters) *Problem {
	base, _, _ := strings.Cut(name, ".")
	if hint := p.Hints[base]; hint != "" {
		return BadParameter(name, "unknown parameter %q: %s", name, hint)
	}
	known := p.names()
	near := suggest.Nearest(name, known)
	if near == "" && slices.Contains(known, base) {
		near = base
	}
	if _, rest, _ := strings.Cut(name, "_"); near == "" && slices.Contains(known, rest) {
		near = rest
	}
	if near != "" {
		return BadParameter(name, "unknown parameter %q: did you mean %q?", name, near)
	}
	if len(known) == 0 {
		return BadParameter(name, "unknown parameter %q: want none here", name)
	}
	return BadParameter(name, "unknown parameter %q: want %s", name, strings.Join(known, ", "))
}

// Bool reads "true" or "false"; absent is false.
func Bool(values url.Values, name string) (bool, *Problem) {
	if !values.Has(name) {
		return false, nil
	}
	switch values.Get(name) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, BadParameter(name, "%s %q: want true or false", name, values.Get(name))
}

// Uint reads a decimal number up to most; absent is 0.
func Uint(values url.Values, name string, most uint64) (uint64, *Problem) {
	if !values.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseUint(values.Get(name), 10, 64)
	if err != nil || n > most {
		return 0, BadParameter(name, "%s %q: want a number from 0 to %d", name, values.Get(name), most)
	}
	return n, nil
}

// Duration reads a duration such as "30s" or "1m30s", up to most.
func Duration(values url.Values, name string, absent, most time.Duration) (time.Duration, *Problem) {
	if !values.Has(name) {
		return absent, nil
	}
	d, err := time.ParseDuration(values.Get(name))
	if err != nil || d < 0 || d > most {
		return 0, BadParameter(name, "%s %q: want a duration from 0s to %s, for instance 30s", name, values.Get(name), most)
	}
	return d, nil
}
