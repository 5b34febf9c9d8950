package stream

import (
	"errors"
	"strings"
	"testing"
)

func TestPositions(t *testing.T) {
	for _, s := range []string{
		"w@e-0", "services@5f3a9c1e-1042", "services@5f3a9c1e-0/1042", "a.b-c_d@e.1~2-18446744073709551615",
		"w@e-18446744073709551614/18446744073709551615", "w@_e-11!2", "w@_e-11/12!12", "w@_e-0/12!1", "w@_e.5f3a9c1e-7!7",
		"w@_e-1000000!", "w@_e-1000000!999999", "w@_e-18446744073709551615!", "w@_e-11~1", "w@_e~2-0~1z141z3", "w@_e-11!2~k3x9qz",
		"w@_e-18446744073709551615!999999~1z141z3", "w@_e-1000000!~z", "w@e-11~1",
	} {
		p, err := ParsePosition(s)
		if err != nil || p.String() != s {
			t.Errorf("%s: %v, %v", s, p, err)
		}
	}
	for _, s := range []string{
		"", "w", "w@", "w@e", "w@e-", "@e-1", "w@-1", "w@e-01", "w@e-+1", "w@e--1", "w@e-1/", "w@e-1/1", "w@e-2/1", "w@e-1/2/3",
		"w@e-18446744073709551616", "w @e-1", "w@e e-1", "w@e-1 ", "w@é-1", "w@e-1\n", "wé@e-1", "w@" + strings.Repeat("x", 25) + "-1",
		strings.Repeat("w", 65) + "@e-1", "w@e-11!2", "w@_e-11!12", "w@_e-11!0", "w@_e-11!02", "w@_e-11!", "w@_e-999999!", "w@_e-11!2/12",
		"w@_e-11!2!2", "w@_e-1000001!1000000", "w@_e!2-11", "w@_e-11!+2", "w@_e-11/12!13", "w@_e-0!",
		"w@_e-11~", "w@_e-11~0", "w@_e-11~01", "w@_e-11~A", "w@_e-11~1z141z4", "w@_e-11~-1", "w@_e-11~+1", "w@_e-11/12~1",
		"w@_e-11~1~2", "w@_e-11~1!2", "w@_e~1-11~", "w@_e-11~k_1",
	} {
		if p, err := ParsePosition(s); err == nil {
			t.Errorf("%q was read as %+v", s, p)
		}
	}
}

func TestPositionDeletesCompleteTo(t *testing.T) {
	for text, want := range map[string]uint64{
		"w@e-11": 11, "w@_e-11": 11, "w@e-11/12": 12, "w@_e-11/12": 12, "w@_e-11!2": 9, "w@_e-11/12!2": 10, "w@_e-11!11": 0,
		"w@_e-1000000!999999": 1, "w@_e-1000000!": 0,
	} {
		p, err := ParsePosition(text)
		if err != nil || p.DeletesCompleteTo() != want {
			t.Errorf("%s has all deletes up to %d, %v; want %d", text, p.DeletesCompleteTo(), err, want)
		}
	}
	far := Position{Watch: "w", Epoch: "_e", Upserts: 3_000_000, AsOf: 3_000_000, DeletesBehind: 1_000_000}
	if got := far.String(); got != "w@_e-3000000!" {
		t.Errorf("%s, want no number behind the mark", got)
	}
}

func TestPositionLists(t *testing.T) {
	ps, err := ParsePositions("a@e-1,b@f-2/3")
	if err != nil || len(ps) != 2 || ps[0].Watch != "a" || ps[1].AsOf != 3 {
		t.Errorf("%v, %v", ps, err)
	}
	if ps, err := ParsePositions(""); err != nil || len(ps) != 0 {
		t.Errorf("an empty list: %v, %v", ps, err)
	}
	for _, s := range []string{"a@e-1,", ",", "a@e-1,a@e-2", "a@e-1;b@e-1", strings.Repeat("a", 1025)} {
		_, err := ParsePositions(s)
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%.20q: %v, want an InvalidError", s, err)
		}
	}
}

func FuzzParsePositions(f *testing.F) {
	f.Add("a@e-1,b@f-2/3")
	f.Add("a@_e-11/12!3,b@_f-11!3,c@_f-1000000!")
	f.Add("a@_e-11!3~k3x9qz,b@_f~1-11~1")
	f.Fuzz(func(t *testing.T, s string) {
		ps, err := ParsePositions(s)
		if err != nil {
			return
		}
		parts := make([]string, len(ps))
		for i, p := range ps {
			parts[i] = p.String()
			if len(parts[i]) > LongestPosition(p.Watch) {
				t.Errorf("%q is longer than LongestPosition says", parts[i])
			}
		}
		if got := strings.Join(parts, ","); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

func TestCanonicalEpoch(t *testing.T) {
	for _, e := range []string{"5f3a9c1e", "a.b_c~d"} {
		if CanonicalEpoch(e) != e {
			t.Errorf("%q was changed", e)
		}
	}
	seen := map[string]string{}
	for _, e := range []string{"", "has space", "has-dash", strings.Repeat("x", 25), "é"} {
		c := CanonicalEpoch(e)
		if !validEpoch(c) || c != CanonicalEpoch(e) {
			t.Errorf("%q became %q", e, c)
		}
		if other, taken := seen[c]; taken {
			t.Errorf("%q and %q are the same epoch", e, other)
		}
		seen[c] = e
	}
}

// Followers of the watch read the mark, so nothing may take it away.
func TestUnnumberedEpochKeepsItsMark(t *testing.T) {
	for _, epoch := range []string{"e", "_e", strings.Repeat("x", maxEpochLength), "not allowed", "_not allowed", "_" + strings.Repeat("x", 40)} {
		got := UnnumberedName(epoch)
		for _, e := range []string{got, CanonicalEpoch(got)} {
			if !strings.HasPrefix(e, UnnumberedEpoch) || !validEpoch(e) {
				t.Errorf("%q becomes %q", epoch, got)
			}
		}
		if UnnumberedName(got) != got {
			t.Errorf("%q is marked twice", got)
		}
	}
	if UnnumberedName("a b") == UnnumberedName("a c") {
		t.Error("two epochs have one name")
	}
}
