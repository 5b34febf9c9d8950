package main

import (
	"strings"
	"testing"
)

func TestDifferencesAreSeen(t *testing.T) {
	made := []product{{"a", []byte("1")}, {"b", []byte("2")}}
	if err := compare(made, []product{{"a", []byte("1")}, {"b", []byte("2")}}); err != nil {
		t.Errorf("the same: %v", err)
	}
	for name, again := range map[string][]product{
		"a byte": {{"a", []byte("1")}, {"b", []byte("3")}},
		"a name": {{"a", []byte("1")}, {"c", []byte("2")}},
		"a file": {{"a", []byte("1")}},
	} {
		if compare(made, again) == nil {
			t.Errorf("%s differs: want an error", name)
		}
	}
}

func TestTargetsAreKnown(t *testing.T) {
	targets, err := parseTargets(everywhere)
	if err != nil || len(targets) != 6 {
		t.Errorf("%v, %v, want 6 targets", targets, err)
	}
	for _, names := range []string{"", "linux", "linux/riscv64", "plan9/amd64", "amd64"} {
		if got, err := parseTargets(names); err == nil || !strings.Contains(err.Error(), "linux/amd64") {
			t.Errorf("%q: %v, %v, want an error that names the targets", names, got, err)
		}
	}
}
