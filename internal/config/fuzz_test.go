package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzParse looks for input that makes the parser panic, both accept and
// reject it, or report an error without a place in the file.
func FuzzParse(f *testing.F) {
	f.Add(everything)
	f.Add(everyKeyOfTemplates)
	cases, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, part := range strings.Split(string(cases), "=== ")[1:] {
		_, text, _ := strings.Cut(part, "\n")
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f", []byte(text), fakeEnvironment())
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v and %v", c, err)
		}
		if err != nil {
			checkErrors(t, text, err)
		}
	})
}

func checkErrors(t *testing.T, text string, err error) {
	var all Errors
	if !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("got a %T without an error in it: %v", err, err)
	}
	lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1
	for _, e := range all {
		if e.Line < 1 || e.Line > lines+1 || e.Column < 1 || e.Message == "" {
			t.Errorf("no place in a file of %d lines: %+v", lines, *e)
		}
		if strings.Contains(e.Message, "hunter2") {
			t.Errorf("shows the value of a variable: %s", e.Message)
		}
	}
}
