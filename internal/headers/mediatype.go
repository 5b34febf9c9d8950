package headers

import "strings"

// Preference is a client's preference for one media type.
type Preference struct {
	Quality   float64 // 0: not acceptable
	Precision Precision
}

// Precision is how precisely a client names a media type.
type Precision int

const (
	notAtAll Precision = iota - 1
	ByAll              // by */*, or not at all
	ByGroup            // by type/*
	ByName             // by type/subtype
)

// Beats reports whether a client prefers p, or names it more precisely.
func (p Preference) Beats(other Preference) bool {
	return p.Quality > other.Quality || p.Quality == other.Quality && p.Precision > other.Precision
}

// PreferenceFor returns the preference of the most precise range, in all headers Accept of
// a request, that covers a media type (RFC 9110, section 12.5.1).
func PreferenceFor(headers []string, mediaType string) Preference {
	best := Preference{Precision: notAtAll}
	for _, header := range headers {
		for item := range strings.SplitSeq(header, ",") {
			mediaRange, parameters, _ := strings.Cut(item, ";")
			precision := coverage(strings.ToLower(strings.TrimSpace(mediaRange)), mediaType)
			if precision > best.Precision {
				best = Preference{Quality: quality(parameters), Precision: precision}
			}
		}
	}
	best.Precision = max(best.Precision, ByAll)
	return best
}

// coverage returns how precisely a media range covers a media type.
func coverage(mediaRange, mediaType string) Precision {
	group, _, _ := strings.Cut(mediaType, "/")
	switch mediaRange {
	case mediaType:
		return ByName
	case group + "/*":
		return ByGroup
	case "*/*":
		return ByAll
	}
	return notAtAll
}
