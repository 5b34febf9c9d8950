package files

import (
	"fmt"
	"maps"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// byHand is a Watch call whose bursts end at the test's command, and not after
// some time.
type byHand struct {
	*watching
	*streamtest.SinkRecorder
	disk  disk
	marks int
}

func watchByHand(t *testing.T, d disk) *byHand {
	t.Helper()
	sink := streamtest.NewSinkRecorder(stream.Resume{}, nil)
	b := &byHand{newWatching(d.source(Config{}), sink), sink, d, 0}
	t.Cleanup(b.hints.close)
	b.touched.all, b.touched.renew = true, true
	d.must(b.look(t.Context()))
	d.must(b.begin(stream.Resume{}))
	return b
}

// settle takes the hints of everything that happened so far, and ends the burst.
func (b *byHand) settle() {
	b.disk.t.Helper()
	b.marks++
	mark := fmt.Sprint(".mark", b.marks)
	b.disk.write(mark, "")
	for e := range b.hints.events() {
		if name, _ := b.hints.name(e); name == mark {
			break
		}
		b.hint(e, true)
	}
	for !b.first.IsZero() {
		b.disk.must(b.update(b.disk.t.Context()))
	}
}

// want fails unless this is the state, after that many commits, and nothing
// was ever wrong.
func (b *byHand) want(commits int, want map[string]string) {
	b.disk.t.Helper()
	got := map[string]string{}
	for key, v := range b.State() {
		got[key] = v.Value
	}
	if !maps.Equal(got, want) {
		b.disk.t.Errorf("state is %.500s, want %.500s", fmt.Sprint(got), fmt.Sprint(want))
	}
	if n := len(b.Commits()); n != commits {
		b.disk.t.Errorf("%d Commits, want %d", n, commits)
	}
	if all := b.Statuses(); len(all) > 0 {
		b.disk.t.Errorf("status %v, want none", all)
	}
}
