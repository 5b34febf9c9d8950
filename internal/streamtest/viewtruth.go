package streamtest

import (
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// TruthOfView returns the truth of the part of an upstream that a definition selects, under the
// names that its orders have there. served are those that a gateway made up; see
// [streamtest.Truth.Narrow].
func TruthOfView(all *Truth, d *view.Definition, served ...string) *Truth {
	return all.Narrow(d.Epoch, selectedBy(d), served...)
}

// selectedBy returns the resources that a definition selects, as it shows them.
func selectedBy(d *view.Definition) func(stream.Resource) (stream.Resource, bool) {
	return func(r stream.Resource) (stream.Resource, bool) {
		if in, err := d.Matches(r); !in || err != nil {
			return r, false
		}
		r, err := d.Project(r)
		return r, err == nil
	}
}
