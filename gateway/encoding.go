package gateway

import "strings"

// acceptsGzip reports whether a client prefers a stream in gzip, by its
// Accept-Encoding (RFC 9110, section 12.5.3). A client that excludes everything gets
// the stream as it is.
func acceptsGzip(accept []string) bool {
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
