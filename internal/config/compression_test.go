package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestUncompressed: a view is not compressed if a watch that it is, or may be, a part of is
// not.
func TestUncompressed(t *testing.T) {
	c := parse(t, `
sources: { local: { type: store } }
watches:
  secrets: { source: local, compression: none }
  part: { view_of: secrets, prefix: a/ }
  part-of-part: { view_of: part, prefix: a/b/ }
  others: { source: local }
  part-of-others: { view_of: others, prefix: a/ }
  plain-part-of-others: { view_of: others, prefix: a/, compression: none }
  "of-{n}": { source: local, params: { n: "[a-z]+" }, compression: none }
  "open-{n}": { source: local, params: { n: "[a-z]+" } }
  "part-{n}": { view_of: secrets, params: { n: "[a-z]+" }, prefix: "{n}/" }
  "by-{n}": { view_of: others, params: { n: "[a-z]+" }, prefix: "{n}/" }
  "any-{n}": { view_of: "open-{n}", params: { n: "[a-z]+" }, prefix: a/ }
`)
	if got, want := fmt.Sprint(c.Uncompressed()), "[secrets part part-of-part plain-part-of-others of-{n} part-{n} any-{n}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	all := parse(t, `
sources: { local: { type: store } }
watches:
  "open-{n}": { source: local, params: { n: "[a-z]+" } }
  "any-{n}": { view_of: "open-{n}", params: { n: "[a-z]+" }, prefix: a/ }
`)
	if got := all.Uncompressed(); len(got) > 0 {
		t.Errorf("nothing is uncompressed, and %q are", got)
	}
	_, err := Parse("f", []byte("sources: { local: { type: store } }\nwatches: { a: { source: local, compression: gzip } }"), Environment{})
	if err == nil || !strings.Contains(err.Error(), `f:2:45: watches.a.compression: "gzip": want none; without the key it is as in stream`) {
		t.Errorf("gzip: %v", err)
	}
}
