package headers

import (
	"slices"
	"strconv"
	"strings"
)

// PreferredCoding returns which of the offered content codings a client prefers, by all its
// headers Accept-Encoding (RFC 9110, section 12.5.3); of those with the same weight, the one that
// is offered first. It is empty if the client prefers the answer as it is, or excludes everything.
func PreferredCoding(accept []string, offered ...string) (preferred string) {
	const unsaid = -1
	weights := slices.Repeat([]float64{unsaid}, len(offered))
	identity, others := float64(unsaid), float64(unsaid)
	for _, header := range accept {
		for item := range strings.SplitSeq(header, ",") {
			coding, parameters, _ := strings.Cut(item, ";")
			q := quality(parameters)
			switch coding = strings.ToLower(strings.TrimSpace(coding)); coding {
			case "identity":
				identity = max(identity, q)
			case "*":
				others = max(others, q)
			case "x-gzip":
				coding = "gzip"
				fallthrough
			default:
				if i := slices.Index(offered, coding); i >= 0 {
					weights[i] = max(weights[i], q)
				}
			}
		}
	}
	most := max(identity, 0)
	for i, coding := range offered {
		q := weights[i]
		if q == unsaid {
			q = others
		}
		if q > most || q == most && q > 0 && preferred == "" {
			preferred, most = coding, q
		}
	}
	return preferred
}

// AcceptsGzip reports whether a client prefers an answer in gzip to one as it is.
func AcceptsGzip(accept []string) bool { return PreferredCoding(accept, "gzip") != "" }

// quality reads the weight among the parameters of an item of a header such as Accept
// (RFC 9110, section 12.4.2). It is 1 if not given and 0 if it cannot be read.
func quality(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}
