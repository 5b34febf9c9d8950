package headers

import (
	"strconv"
	"strings"
)

// AcceptsGzip reports whether a client prefers an answer in gzip, by all its headers
// Accept-Encoding (RFC 9110, section 12.5.3). A client that excludes everything gets
// the answer as it is.
func AcceptsGzip(accept []string) bool {
	const unsaid = -1
	gzip, identity, others := float64(unsaid), float64(unsaid), float64(unsaid)
	for _, header := range accept {
		for item := range strings.SplitSeq(header, ",") {
			coding, parameters, _ := strings.Cut(item, ";")
			q := quality(parameters)
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				gzip = max(gzip, q)
			case "identity":
				identity = max(identity, q)
			case "*":
				others = max(others, q)
			}
		}
	}
	if gzip == unsaid {
		gzip = others
	}
	return gzip > 0 && gzip >= identity
}

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
