package streamtest

import (
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// TruthOfView returns the truth of the part of an upstream that a definition selects, under the
// names that its orders have there. served are those that a gateway made up; see
// [streamtest.Truth.Narrow].
func TruthOfView(all *Truth, d *view.Definition, served ...string) *Truth {
	return all.Narrow(d.Epoch, func(r stream.Resource) (stream.Resource, bool) {
		if in, err := d.Matches(r); !in || err != nil {
			return r, false
		}
		r, err := d.Project(r)
		return r, err == nil
	}, served...)
}
