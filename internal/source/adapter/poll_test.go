package adapter

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// recorder is a Sink that records its calls, and fails one of them.
type recorder struct {
	stream.PlainSink
	calls []string
	fails string
}

var errRefused = errors.New("refused")

func (r *recorder) say(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	r.calls = append(r.calls, call)
	if call == r.fails {
		return errRefused
	}
	return nil
}

func (r *recorder) Reset(epoch string) error { return r.say("reset %s", epoch) }
func (r *recorder) Upsert(x stream.Resource) error {
	return r.say("%s=%s@%d", x.Key, x.Value, x.Revision)
}
func (r *recorder) Delete(key string, revision uint64) error { return r.say("-%s@%d", key, revision) }
func (r *recorder) Commit(revision uint64) error             { return r.say("commit@%d", revision) }
func (r *recorder) Status(stream.State, string) error        { return r.say("status") }

func TestSend(t *testing.T) {
	changes := []PolledChange{{Key: "a"}, {Key: "b", Value: []byte("1")}}
	all := []string{"-a@7", "b=1@7", "commit@7"}
	sink := &recorder{}
	if err := SendPolled(sink, changes, 7); err != nil || !slices.Equal(sink.calls, all) {
		t.Errorf("calls %q, error %v; want %q", sink.calls, err, all)
	}
	for i, fails := range all {
		sink := &recorder{fails: fails}
		if err := SendPolled(sink, changes, 7); !errors.Is(err, errRefused) || !slices.Equal(sink.calls, all[:i+1]) {
			t.Errorf("%s fails: calls %q, error %v", fails, sink.calls, err)
		}
	}
}

func TestNewEpoch(t *testing.T) {
	a, b := NewEpoch(), NewEpoch()
	if a == b || stream.CanonicalEpoch(a) != a {
		t.Errorf("epochs %q and %q: want two, that can stand in a position", a, b)
	}
}
