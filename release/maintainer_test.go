package main

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/release/internal/licenses"
)

func TestMaintainer(t *testing.T) {
	development, tagged := licenses.Source{Version: "0.0.0-dev+g0123456789ab"}, licenses.Source{Version: "1.2.3", Tagged: true}
	for _, text := range []string{nobody, "Ann Other <ann@example.org>", "Zoë Ünal <zoe+packages@mail.example.org>"} {
		if got, err := parseMaintainer(text, tagged); err != nil || got != text {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if got, err := parseMaintainer("", development); err != nil || got != nobody {
		t.Errorf("a development version without maintainer: %q, %v, want %q", got, err, nobody)
	}
	if got, err := parseMaintainer("", tagged); err == nil || !strings.Contains(err.Error(), "MAINTAINER=") {
		t.Errorf("a release without maintainer: %q, %v, want an error that names the variable", got, err)
	}
	for _, text := range []string{
		"ann@example.org", "Ann", "Ann <ann>", "Ann <ann@localhost>", "Ann <ann@example.org>, Bob <bob@example.org>",
		"Ann <ann@example.org>\nDepends: x", "Ann\r <ann@example.org>", `"Ann" <ann@example.org>`, "<ann@example.org>", "Ann <ann@example.org> x",
	} {
		if got, err := parseMaintainer(text, development); err == nil {
			t.Errorf("%q: %q, want an error", text, got)
		}
	}
}
