package gateway

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

// notYet are the parameters of the contract that narrow a watch to a view but that no
// endpoint accepts yet. Followed by a dot and the name of a watch
// ("filter.services"), they narrow one watch of several.
var notYet = []string{"labels", "filter", "fields"}

// queryOf reads the query of a request, which may contain each of the known
// parameters once and nothing else. The error names the parameter, and the one that
// was probably meant.
func queryOf(r *http.Request, known ...string) (url.Values, *problem) {
	return parseQuery(r.URL.RawQuery, parameters{once: known})
}

// parameters are those that a query may have.
type parameters struct {
	once     []string // at most once each; one that ends in a dot is followed by any name
	repeated []string // any number of times
}

// knows reports whether a query may have the parameter.
func (p parameters) knows(name string) bool {
	base, _, dotted := strings.Cut(name, ".")
	return slices.Contains(p.repeated, name) || slices.Contains(p.once, name) || dotted && slices.Contains(p.once, base+".")
}

// names returns the parameters without those that end in a dot.
func (p parameters) names() []string {
	return slices.DeleteFunc(slices.Concat(p.repeated, p.once), func(name string) bool { return strings.HasSuffix(name, ".") })
}

// parseQuery is queryOf for any parameters.
func parseQuery(query string, known parameters) (url.Values, *problem) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, badParameter("query", "the query of the URL cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) { // so that the answer to several mistakes is always the same
		if !known.knows(name) {
			return nil, refusedParameter(name, known.names())
		}
		if n := len(values[name]); n > 1 && !slices.Contains(known.repeated, name) {
			return nil, badParameter(name, "parameter %q is given %d times: want it once", name, n)
		}
	}
	return values, nil
}

func refusedParameter(name string, known []string) *problem {
	base, _, _ := strings.Cut(name, ".")
	if slices.Contains(notYet, base) {
		return badParameter(name, "parameter %q is not available yet", name)
	}
	if near := suggest.Nearest(name, known); near != "" {
		return badParameter(name, "unknown parameter %q: did you mean %q?", name, near)
	}
	if len(known) == 0 {
		return badParameter(name, "unknown parameter %q: want none here", name)
	}
	return badParameter(name, "unknown parameter %q: want %s", name, strings.Join(known, ", "))
}

// boolParameter reads "true" or "false"; absent is false.
func boolParameter(values url.Values, name string) (bool, *problem) {
	if !values.Has(name) {
		return false, nil
	}
	switch values.Get(name) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, badParameter(name, "%s %q: want true or false", name, values.Get(name))
}

// uintParameter reads a decimal number up to most; absent is 0.
func uintParameter(values url.Values, name string, most uint64) (uint64, *problem) {
	if !values.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseUint(values.Get(name), 10, 64)
	if err != nil || n > most {
		return 0, badParameter(name, "%s %q: want a number from 0 to %d", name, values.Get(name), most)
	}
	return n, nil
}

// durationParameter reads a duration such as "30s" or "1m30s", up to most.
func durationParameter(values url.Values, name string, absent, most time.Duration) (time.Duration, *problem) {
	if !values.Has(name) {
		return absent, nil
	}
	d, err := time.ParseDuration(values.Get(name))
	if err != nil || d < 0 || d > most {
		return 0, badParameter(name, "%s %q: want a duration from 0s to %s, for instance 30s", name, values.Get(name), most)
	}
	return d, nil
}
