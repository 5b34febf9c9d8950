package introspection

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/watchtide/watchtide/gateway/internal/problem"
)

const (
	defaultListed = 100
	maxListed     = 1000
	// MaxListedGroups is how many groups of subscribers are listed.
	MaxListedGroups = 50
	// maxSearch is how many bytes a text has that subscribers are searched for.
	maxSearch = 128
	// maxPrincipal is how many bytes the name of a group of principals has.
	maxPrincipal = 1024
)

// subscribersQuery parses the parameters of the list of subscribers, unless there is already a
// problem.
func subscribersQuery(query url.Values, before *problem.Problem) (q Query, p *problem.Problem) {
	q.Limit, p = listed(query, before)
	q.By, p = choiceOf(query, "group", Properties, p)
	q.Order, p = choiceOf(query, "sort", Orders, p)
	q.After, p = placeOf(query, cmp.Or(q.Order, ByLag), p)
	for _, name := range []string{"search", "application", "network", "transport"} {
		p = shortEnough(query, name, maxSearch, p)
	}
	for _, name := range []string{"principal", "client_id"} {
		p = shortEnough(query, name, maxPrincipal, p)
	}
	q.Filter = Filter{
		Watch: query.Get("watch"), Search: query.Get("search"),
		Application: query.Get("application"), Network: query.Get("network"), Transport: query.Get("transport"),
		Principal: query.Get("principal"), ClientID: query.Get("client_id"),
	}
	return q, p
}

// listed returns how many subscribers are listed.
func listed(query url.Values, before *problem.Problem) (int, *problem.Problem) {
	if before != nil || !query.Has("limit") {
		return defaultListed, before
	}
	n, p := problem.Uint(query, "limit", maxListed)
	return int(n), p
}

// placeOf returns the place after which the list continues, in the order of the list.
func placeOf(query url.Values, in Order, before *problem.Problem) (place Place, p *problem.Problem) {
	if before != nil || !query.Has("after") {
		return place, before
	}
	place, ok := ParsePlace(query.Get("after"))
	if !ok {
		return place, problem.BadParameter("after", "after: want next of the former page")
	}
	if place.Order != in {
		return place, problem.BadParameter("after", "after: it is next of a page with sort=%s, and this one has sort=%s", place.Order, in)
	}
	return place, nil
}

// choiceOf returns the value of a parameter, one of those that are known; empty: it is absent.
func choiceOf[T ~string](query url.Values, name string, known []T, before *problem.Problem) (T, *problem.Problem) {
	got := T(query.Get(name))
	if before != nil || !query.Has(name) || slices.Contains(known, got) {
		return got, before
	}
	return got, problem.BadParameter(name, "%s: want one of %s", name, Names(known))
}

func shortEnough(query url.Values, name string, most int, before *problem.Problem) *problem.Problem {
	if before != nil || len(query.Get(name)) <= most {
		return before
	}
	return problem.BadParameter(name, "%s: want %d bytes at most", name, most)
}
