package rest

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// condition reads the conditional headers of a write (RFC 9110, section 13.1):
// If-Match: "revision" makes it a compare-and-set, If-None-Match: * a create. given
// is false if there is neither.
func condition(h http.Header) (revision uint64, given bool, p *problem.Problem) {
	match, noneMatch := h.Values("If-Match"), h.Values("If-None-Match")
	switch {
	case len(match) > 0 && len(noneMatch) > 0:
		return 0, false, problem.BadParameter("If-None-Match", "both If-Match and If-None-Match are given: want one of them")
	case len(match) > 0:
		revision, p = ifMatch(match)
		return revision, true, p
	case len(noneMatch) > 0:
		if strings.TrimSpace(strings.Join(noneMatch, ",")) != "*" {
			return 0, false, problem.BadParameter("If-None-Match", "If-None-Match %q: want * for a resource that must not be there yet", strings.Join(noneMatch, ", "))
		}
		return 0, true, nil
	}
	return 0, false, nil
}

// partTag matches the ETag of a resource of which only a part was sent; see authz.Shown.
var partTag = regexp.MustCompile(`^"[0-9]{1,20}\.[a-z2-7]{32}"$`)

// ifMatch reads the one revision that the resource must have; never 0.
func ifMatch(values []string) (uint64, *problem.Problem) {
	got := strings.TrimSpace(strings.Join(values, ","))
	if partTag.MatchString(got) {
		return 0, problem.BadParameter("If-Match", "If-Match %s is the tag of a part of the resource: want that of the whole resource, since a write replaces all of it", got)
	}
	revision, quoted := strings.CutPrefix(got, `"`)
	revision, closed := strings.CutSuffix(revision, `"`)
	n, err := strconv.ParseUint(revision, 10, 64)
	if !quoted || !closed || err != nil || n == 0 {
		return 0, problem.BadParameter("If-Match", `If-Match %q: want one revision in quotes, for instance "1042"`, got)
	}
	return n, nil
}

// quote makes an entity tag of text that contains no quotes.
func quote(text string) string { return `"` + text + `"` }

// tagMatches reports whether an If-None-Match names the tag, by weak comparison: RFC
// 9110, section 13.1.2.
func tagMatches(header []string, tag string) bool {
	for item := range strings.SplitSeq(strings.Join(header, ","), ",") {
		item = strings.TrimSpace(item)
		if item == "*" || strings.TrimPrefix(item, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
