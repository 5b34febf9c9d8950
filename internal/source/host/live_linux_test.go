package host

import (
	"context"
	"errors"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"strconv"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// TestProcessStartsAndEnds watches this machine while a process runs.
func TestProcessStartsAndEnds(t *testing.T) {
	source, err := New(Config{Collection: Processes, Interval: MinInterval})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	sink := streamtest.NewSinkRecorder(stream.Resume{}, nil)
	ended := make(chan error, 1)
	go func() {
		ended <- source.Watch(ctx, stream.Resume{}, sink)
		sink.End()
	}()

	await(t, sink, "a snapshot", func() bool { return len(sink.Commits()) > 0 })
	var pid string
	t.Run("child", func(t *testing.T) {
		pid = strconv.Itoa(startChild(t))
		await(t, sink, "the child", func() bool { return sink.State()[pid].Revision > 1 })
	})
	await(t, sink, "the child's end", func() bool { _, there := sink.State()[pid]; return !there })

	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returned %v, want %v", err, context.Canceled)
	}
	if err := sink.Err(); err != nil {
		t.Error(err)
	}
	if n := sink.Resets(); n != 1 {
		t.Errorf("%d resets, want 1", n)
	}
	number, _ := strconv.Atoi(pid)
	if _, kept := source.reader.(*processReader).table.(*procTable).owners.byPID[number]; kept {
		t.Error("the child's user is remembered after its end")
	}
}

// await waits until the sink shows the expected state.
func await(t *testing.T, sink *streamtest.SinkRecorder, what string, shown func() bool) {
	t.Helper()
	timeout := time.After(sourcetest.Timeout)
	for {
		changed := sink.Changed()
		if shown() {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("no sign of %s in %v", what, sourcetest.Timeout)
		}
	}
}
