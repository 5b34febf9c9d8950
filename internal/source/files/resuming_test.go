package files

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// TestResume: the second Watch call sends only the differences, at new
// revisions.
func TestResume(t *testing.T) {
	d := newDisk(t)
	d.write("a.json", "1")
	d.write("b.json", "1")
	s := d.source(Config{})
	first := follow(t, s)
	first.awaitState(map[string]string{"a": "1", "b": "1"})
	first.stop()
	d.write("a.json", "2")
	second := resume(t, s, first)
	second.awaitState(map[string]string{"a": "2", "b": "1"})
	if n := second.Resets(); n != 0 {
		t.Errorf("Reset was called %d times, want none: nothing was lost", n)
	}
	second.stop()
	third := follow(t, s) // from nothing: a snapshot, in which all keep their revision
	third.awaitState(map[string]string{"a": "2", "b": "1"})
	if !maps.Equal(third.State(), second.State()) {
		t.Errorf("the snapshot has %v, want %v", third.State(), second.State())
	}
}

// TestSinkThatFailed: changes that the sink did not accept are sent again.
func TestSinkThatFailed(t *testing.T) {
	d := newDisk(t)
	s := d.source(Config{})
	first := follow(t, s)
	first.awaitState(map[string]string{})
	refused := errors.New("refused")
	first.Fail(refused)
	d.write("a.json", "1")
	<-first.ended
	if !errors.Is(first.err, refused) {
		t.Fatalf("Watch returned %v, want %v", first.err, refused)
	}
	second := resume(t, s, first)
	second.awaitState(map[string]string{"a": "1"})
}

// blockingSink blocks in a Commit.
type blockingSink struct {
	*streamtest.SinkRecorder
	entered, release chan struct{}
}

func (b *blockingSink) Commit(revision uint64) error {
	if b.entered != nil {
		close(b.entered)
		b.entered = nil
		<-b.release
	}
	return b.SinkRecorder.Commit(revision)
}

// TestLostHints makes the kernel's queue overflow, while the source cannot read
// it, and then makes changes that get no hint.
func TestLostHints(t *testing.T) {
	d := newDisk(t)
	d.write("a.json", "1")
	d.write("b.json", "1")
	s := d.source(Config{Rescan: -1})
	sink := &blockingSink{streamtest.NewSinkRecorder(stream.Resume{}, nil), make(chan struct{}), make(chan struct{})}
	entered := sink.entered
	f := &follower{SinkRecorder: sink.SinkRecorder, t: t, ended: make(chan struct{}), cancel: func() {}}
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(t.Context(), stream.Resume{}, sink) }()
	<-entered
	queue := queueLength(t)
	for i := range queue + 2000 { // alternating, since equal hints in a row are one
		d.must(os.Chmod(d.path([]string{"a.json", "b.json"}[i%2]), 0o644))
	}
	d.write("c.json", "3")
	d.write("dir/d.json", "4")
	close(sink.release)
	f.awaitState(map[string]string{"a": "1", "b": "1", "c": "3", "dir/d": "4"})
	d.write("dir/d.json", "5")
	f.awaitState(map[string]string{"a": "1", "b": "1", "c": "3", "dir/d": "5"})
	refused := errors.New("enough")
	f.Fail(refused)
	d.write("c.json", "4")
	if err := <-ended; !errors.Is(err, refused) {
		t.Errorf("Watch returned %v, want %v", err, refused)
	}
}

func queueLength(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip("no inotify here, whose queue could overflow")
	}
	if _, err := fmt.Sscan(string(bytes.TrimSpace(text)), &n); err != nil || n > 1<<17 {
		t.Skipf("the queue has %q places, too many to fill", text)
	}
	return n
}
