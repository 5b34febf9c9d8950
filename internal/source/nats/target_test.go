package nats

import (
	"strings"
	"testing"
)

func TestCheckOfATarget(t *testing.T) {
	for name, test := range map[string]struct {
		keys, key, value string
		want             string // empty: it can be there
	}{
		"a key":           {key: "a/b.c_d-e=F.9", value: "1"},
		"the largest":     {key: strings.Repeat("k", maxKeyBytes), value: strings.Repeat("1", 1000)},
		"a space":         {key: "a b", value: "1", want: "in tokens between dots"},
		"a dot before":    {key: ".a", value: "1", want: "in tokens between dots"},
		"two dots":        {key: "a..b", value: "1", want: "in tokens between dots"},
		"a wildcard":      {key: "a.*", value: "1", want: "in tokens between dots"},
		"not UTF-8":       {key: "\xff", value: "1", want: "in tokens between dots"},
		"empty":           {key: "", value: "1", want: "in tokens between dots"},
		"a long key":      {key: strings.Repeat("k", maxKeyBytes+1), value: "1", want: "the limit is 3584"},
		"a large value":   {key: "a", value: strings.Repeat("1", 1001), want: "value of 1001 bytes is too large, the limit is 1000"},
		"one of the keys": {keys: "a.*.c", key: "a.b.c", value: "1"},
		"any rest":        {keys: "a.>", key: "a.b.c", value: "1"},
		"no rest":         {keys: "a.>", key: "a", value: "1", want: "one that matches"},
		"another token":   {keys: "a.*.c", key: "a.b.d", value: "1", want: "one that matches"},
		"one too many":    {keys: "a.*", key: "a.b.c", value: "1", want: "one that matches"},
		"one too few":     {keys: "a.*.c", key: "a.b", value: "1", want: "one that matches"},
	} {
		t.Run(name, func(t *testing.T) {
			target := &Target{source: &Source{config: Config{Keys: test.keys}}, largest: 1000}
			err := target.Check(test.key, []byte(test.value))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
