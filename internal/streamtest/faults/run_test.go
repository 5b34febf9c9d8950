package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

func TestSourceThatIsRight(t *testing.T) {
	for name, deletes := range map[string]streamtest.DeleteRevisions{
		"own": streamtest.OwnRevision, "none": streamtest.NoRevision, "last seen": streamtest.LastSeen,
	} {
		t.Run("deletes with revision "+name, func(t *testing.T) { Run(t, newMemory(deletes).rig()) })
	}
}

// playOne runs one fault on a rig, whose source may be broken.
func playOne(t *testing.T, rig *Rig, f Fault) (Row, error) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	r, err := newRun(t.Context(), rig)
	if err != nil {
		t.Fatal(err)
	}
	r.patience = 300 * time.Millisecond
	row, err := r.play(t.Context(), f)
	return row, errors.Join(err, r.close(before))
}

// TestUpstreamThatLosesWrites: then nothing else can be checked.
func TestUpstreamThatLosesWrites(t *testing.T) {
	m := newMemory(streamtest.OwnRevision)
	rig := m.rig()
	rig.List = func(context.Context) ([]stream.Resource, uint64, error) { return nil, m.Revision(), nil }
	if _, err := playOne(t, rig, m.cut()); err == nil || !strings.Contains(err.Error(), "queried directly, the upstream does not have the writes") {
		t.Errorf("got %v: want that the upstream, or the rig, is to blame", err)
	}
}

// TestWritesOfUnknownOutcome: every fifth write fails, some of them after they were
// made.
func TestWritesOfUnknownOutcome(t *testing.T) {
	m := newMemory(streamtest.OwnRevision)
	rig := m.rig()
	n := 0
	rig.Put = func(ctx context.Context, key, value string) (stream.Resource, error) {
		if n++; n%10 == 0 {
			return stream.Resource{}, errGone
		}
		r, err := m.put(ctx, key, value)
		if n%5 == 0 {
			err = errGone
		}
		return r, err
	}
	rig.Delete = func(ctx context.Context, key string) (uint64, error) {
		n++
		revision, err := m.delete(ctx, key)
		if n%5 == 0 {
			err = errGone
		}
		return revision, err
	}
	row, err := playOne(t, rig, m.cut())
	if err != nil {
		t.Error(err)
	}
	if n < 20 {
		t.Errorf("only %d writes were made: %v", n, row)
	}
}

// TestPulse: delays are never negative, and end with the context.
func TestPulse(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	if late := pulse(ctx); late < 0 || late > slack {
		t.Errorf("late by %v", late)
	}
}

func TestPrefixNarrows(t *testing.T) {
	if got := (&Rig{}).prefix(keys); got != "a" {
		t.Errorf("prefix %q: want %q", got, "a")
	}
	nested := &Rig{Key: func(i int) string { return fmt.Sprintf("default/kind-%d", i%3) }}
	if got := nested.prefix(keys); got != "default/kind-0" {
		t.Errorf("prefix %q: want one that some keys have and others have not", got)
	}
}

func TestRowIsALineOfFields(t *testing.T) {
	row := Row{Source: "s", Fault: "f", Noticed: 1400 * time.Microsecond, Recovered: 2 * time.Second, Snapshots: 1, Events: 7}
	if got, want := row.String(), "reliability | s | f | 1 ms | - | 2000 ms | 1 | 7 | 0 |"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
