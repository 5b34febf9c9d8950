package grpc

import (
	"testing"

	"github.com/watchtide/watchtide/stream"
)

func epochsOf(t *testing.T, prefix string) *epochs {
	t.Helper()
	s, err := New(Config{Address: "a:1", Watch: "services", Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return &s.epochs
}

// A source resumes from the upstream's previous name of the order.
func TestEpochRoundTrip(t *testing.T) {
	for _, prefix := range []string{"", "web/"} {
		for _, upstream := range []string{"e1", "5f3a9c1e0000.12345678", "x23456789012345678901234"} {
			e := epochsOf(t, prefix)
			ours := e.enter(upstream)
			if ours != stream.CanonicalEpoch(ours) {
				t.Errorf("prefix %q: ours is %q: the sink would hash it", prefix, ours)
			}
			p, ok := e.resume(stream.Resume{Epoch: ours, Revision: 7})
			if want := "services@" + upstream + "-7"; !ok || p.String() != want {
				t.Errorf("prefix %q: resume of %q asks for %q, want %q", prefix, ours, p, want)
			}
		}
	}
}

func TestEpochIsThatOfTheUpstream(t *testing.T) {
	if got := epochsOf(t, "").enter("e1"); got != "e1" {
		t.Errorf("got %q, want e1: replicas and clients of the upstream would not agree", got)
	}
}

func TestEpochDiffersByPrefix(t *testing.T) {
	a, b, all := epochsOf(t, "a/"), epochsOf(t, "b/"), epochsOf(t, "")
	if x, y, z := a.enter("e1"), b.enter("e1"), all.enter("e1"); x == y || x == z || y == z {
		t.Errorf("epochs %q, %q and %q of different prefixes", x, y, z)
	}
	if x, y, z := a.enter(""), b.enter(""), all.enter(""); x == y || x == z || y == z {
		t.Errorf("epochs %q, %q and %q of different prefixes, without positions", x, y, z)
	}
}

func TestEpochThatCannotBeResumed(t *testing.T) {
	e := epochsOf(t, "web/")
	for _, epoch := range []string{"", e.enter(""), "another"} {
		if p, ok := e.resume(stream.Resume{Epoch: epoch, Revision: 7}); ok {
			t.Errorf("epoch %q is resumed from %q", epoch, p)
		}
	}
}

// A source that is new in the process can resume where an older one stopped.
func TestEpochOfAnotherSource(t *testing.T) {
	for _, prefix := range []string{"", "web/"} {
		ours := epochsOf(t, prefix).enter("e1")
		p, ok := epochsOf(t, prefix).resume(stream.Resume{Epoch: ours, Revision: 7})
		if !ok || p.String() != "services@e1-7" {
			t.Errorf("prefix %q: got %q, %t", prefix, p, ok)
		}
	}
}
