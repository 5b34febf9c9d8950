package main

import (
	"fmt"
	"net/mail"
	"regexp"

	"github.com/watchtide/watchtide/release/internal/licenses"
)

// nobody is the maintainer of packages that are not published: no mail can reach a domain below
// .invalid, which RFC 2606 reserves.
const nobody = "Watchtide development version <nobody@watchtide.invalid>"

// plainMaintainer is what the control files of both distributions can hold without quotes.
var plainMaintainer = regexp.MustCompile(`^[^\x00-\x1f\x7f<>",:;]+ <[^\s<>"(),:;]+@[^\s<>"(),:;@]+\.[^\s<>"(),:;@]+>$`)

// parseMaintainer returns the maintainer that packages name. Only versions that nobody can mistake
// for a release may do without.
func parseMaintainer(text string, from licenses.Source) (string, error) {
	const want = `want MAINTAINER="Name <name@example.org>"`
	if text == "" && from.Tagged {
		return "", fmt.Errorf("no maintainer, and %s is the version of a release, whose packages need one: %s", from.Version, want)
	}
	if text == "" {
		return nobody, nil
	}
	if _, err := mail.ParseAddress(text); err != nil {
		return "", fmt.Errorf("maintainer %q: %w: %s", text, err, want)
	}
	if !plainMaintainer.MatchString(text) {
		return "", fmt.Errorf("maintainer %q: not a plain name and a mail address with a domain: %s", text, want)
	}
	return text, nil
}
