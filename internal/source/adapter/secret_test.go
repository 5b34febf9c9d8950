package adapter

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if _, err := ReadSecret(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	for holds, want := range map[string]string{
		"token": "token", "token\n": "token", "token\r\n": "token", "": "", " a b ": " a b ", "a\nb\n\n": "a\nb",
	} {
		if err := os.WriteFile(file, []byte(holds), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadSecret(file); got != want || err != nil {
			t.Errorf("%q is read as %q, %v; want %q", holds, got, err, want)
		}
	}
}

func TestHide(t *testing.T) {
	for _, c := range []struct {
		text, want string
		secrets    []string
	}{
		{"token tOkEn1 is unknown", "token [hidden] is unknown", []string{"tOkEn1"}},
		{"tOkEn1, and tOkEn1", "[hidden], and [hidden]", []string{"Bearer tOkEn1"}},
		{"got Bearer tOkEn1", "got [hidden]", []string{"Bearer tOkEn1"}},
		{"tOkEn1 or sEcReT2", "[hidden] or [hidden]", []string{"tOkEn1", "sEcReT2"}},
		{"of a long-token-1 only long-tok…", "of a [hidden] only [hidden]…", []string{"Bearer long-token-1"}},
		{"long-tea long-tok", "long-tea [hidden]", []string{"long-token-1"}},
		{"want a Bearer token", "want a Bearer token", []string{"Bearer tOkEn1"}},
		{"short words stay", "short words stay", []string{"short", ""}},
		{"nothing to hide", "nothing to hide", nil},
	} {
		if got := HideSecret(c.text, slices.Values(c.secrets)); got != c.want {
			t.Errorf("%q without %q is %q, want %q", c.text, c.secrets, got, c.want)
		}
	}
}
