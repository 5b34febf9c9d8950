package limits

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// distinctClient returns a different client for each i, each in an IPv6 network of
// its own.
func distinctClient(i int) Client {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(a[4:], uint32(i))
	return ClientOf(netip.AddrFrom16(a))
}

func mustEnter(t *testing.T, a *Controller, c Client, watches ...string) Ref {
	t.Helper()
	place, refused := a.Enter(c, watches)
	if refused != nil {
		t.Fatalf("refused: %v", refused)
	}
	return place
}

func wantRefused(t *testing.T, a *Controller, c Client, watches []string, reason Reason, text string) {
	t.Helper()
	_, refused := a.Enter(c, watches)
	if refused == nil || refused.Reason != reason || !strings.Contains(refused.Error(), text) {
		t.Errorf("refusal %v, want %q with %q in it", refused, reason, text)
	}
}

func TestAdmissionLimit(t *testing.T) {
	a := New(Limits{Total: 2}, 0)
	first := mustEnter(t, a, distinctClient(1), "a")
	mustEnter(t, a, distinctClient(2), "a")
	wantRefused(t, a, distinctClient(3), []string{"a"}, refusedSubscribers, "2 streams are open, of 2 at most")
	a.Leave(first)
	mustEnter(t, a, distinctClient(3), "a")
	if a.Count() != 2 {
		t.Fatal("a released place was not reused")
	}
}

func TestAdmissionLimitOfAClient(t *testing.T) {
	a := New(Limits{PerClient: 2}, 0)
	greedy := ClientOf(netip.MustParseAddr("2001:db8:1:2:3:4:5:6"))
	neighbour := ClientOf(netip.MustParseAddr("2001:db8:1:2::1"))
	first := mustEnter(t, a, greedy, "a")
	mustEnter(t, a, neighbour, "a", "b")
	wantRefused(t, a, greedy, []string{"c"}, refusedClient, "client 2001:db8:1:2::/64 has 2 streams open, of 2 at most")
	mustEnter(t, a, nameless, "a")
	a.Leave(first)
	mustEnter(t, a, greedy, "a")
}

// TestAdmissionLimitOfAWatch checks that a stream of several watches counts for each.
func TestAdmissionLimitOfAWatch(t *testing.T) {
	a := New(Limits{PerWatch: 2}, 0)
	both := mustEnter(t, a, nameless, "a", "b")
	mustEnter(t, a, nameless, "b")
	wantRefused(t, a, nameless, []string{"a", "b"}, refusedWatch, `watch "b" has 2 streams, of 2 at most`)
	mustEnter(t, a, nameless, "a") // the refusal has counted nothing
	a.Leave(both)
	mustEnter(t, a, nameless, "b", "a")
}

// TestAdmissionReleases checks random arrivals and departures against a simple
// model, and that nothing remains of streams that have ended.
func TestAdmissionReleases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			Total:     rapid.IntRange(0, 20).Draw(t, "total"),
			PerClient: rapid.IntRange(0, 4).Draw(t, "perClient"),
			PerWatch:  rapid.IntRange(0, 8).Draw(t, "perWatch"),
		}
		a := New(l, 0)
		type stream struct {
			place   Ref
			client  Client
			watches []string
		}
		var open []stream
		choices := [][]string{{"a"}, {"b"}, {"a", "b"}, {"b", "a", "c"}}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				s := stream{client: distinctClient(rapid.IntRange(0, 5).Draw(t, "client")), watches: rapid.SampledFrom(choices).Draw(t, "watches")}
				ofClient, ofWatch := 0, map[string]int{}
				for _, o := range open {
					if o.client == s.client {
						ofClient++
					}
					for _, w := range o.watches {
						ofWatch[w]++
					}
				}
				room := !reached(len(open), l.Total) && !reached(ofClient, l.PerClient)
				for _, w := range s.watches {
					room = room && !reached(ofWatch[w], l.PerWatch)
				}
				place, refused := a.Enter(s.client, s.watches)
				if room != (refused == nil) {
					t.Fatalf("room %t, refusal %v", room, refused)
				}
				if s.place = place; refused == nil {
					open = append(open, s)
				}
			},
			"leave": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("nobody")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				a.Leave(open[i].place)
				open = append(open[:i], open[i+1:]...)
			},
			"": func(t *rapid.T) {
				clients := map[Client]bool{}
				for _, o := range open {
					clients[o.client] = true
				}
				if a.Count() != len(open) || a.ClientCount() != len(clients) {
					t.Fatalf("%d streams of %d clients are counted, want %d of %d", a.Count(), a.ClientCount(), len(open), len(clients))
				}
			},
		})
		for _, o := range open {
			a.Leave(o.place)
		}
		if len(a.clients.rows)+len(a.sets.rows)+len(a.watches)+a.open > 0 {
			t.Fatalf("not released: %+v, %+v, %v, %d open", a.clients, a.sets, a.watches, a.open)
		}
	})
}

func TestAdmissionDrain(t *testing.T) {
	a := New(Limits{}, time.Second)
	first, second := mustEnter(t, a, nameless, "a"), mustEnter(t, a, nameless, "a")
	a.Drain()
	a.Drain() // a second signal changes nothing
	if !a.IsDraining() {
		t.Fatal("not draining")
	}
	wantRefused(t, a, nameless, []string{"a"}, RefusedDraining, "shutting down")
	a.Leave(first)
	if idle(a) {
		t.Fatal("idle with one stream open")
	}
	a.Leave(second)
	if !idle(a) {
		t.Fatal("not idle with no stream open")
	}
}

func TestAdmissionDrainWithoutStreams(t *testing.T) {
	a := New(Limits{}, time.Second)
	a.Drain()
	if !idle(a) {
		t.Fatal("not idle with no stream open")
	}
}

func TestGoodbyesAreSpread(t *testing.T) {
	a := New(Limits{}, 10*time.Second)
	for range 2000 {
		if _, refused := a.Enter(Client{}, []string{"a"}); refused != nil {
			t.Fatal(refused)
		}
	}
	a.Drain()
	var early, late int
	for range 1000 {
		switch d := a.GoodbyeDelay(); {
		case d < 0 || d >= 10*time.Second:
			t.Fatalf("%s is outside of the spread", d)
		case d < 5*time.Second:
			early++
		default:
			late++
		}
	}
	if early < 400 || late < 400 {
		t.Errorf("%d in the first half, %d in the second: want them spread", early, late)
	}
	if d := New(Limits{}, -1).GoodbyeDelay(); d != 0 {
		t.Errorf("%s with no spread", d)
	}
}

// TestFewGoodbyesAreSoonOver: a drain need not last long if few streams are open.
func TestFewGoodbyesAreSoonOver(t *testing.T) {
	for streams, want := range map[int]time.Duration{0: 0, 1: 10 * time.Millisecond, 100: time.Second, 5000: 10 * time.Second} {
		if d := GoodbyeDelay(10*time.Second, streams, 1); d != want {
			t.Errorf("%d streams: the last goodbye is after %v, want %v", streams, d, want)
		}
	}
}

// BenchmarkAdmission measures one stream entering and leaving, among many.
func BenchmarkAdmission(b *testing.B) {
	for _, clients := range []int{1, 50_000} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			a := New(Limits{Total: 1 << 30, PerClient: 1 << 30, PerWatch: 1 << 30}, 0)
			watches := []string{"services"}
			for i := range 50_000 {
				_, _ = a.Enter(distinctClient(i%clients), watches)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				place, _ := a.Enter(distinctClient(i%clients), watches)
				a.Leave(place)
			}
		})
	}
}

func idle(a *Controller) bool {
	select {
	case <-a.Idle:
		return true
	default:
		return false
	}
}

func TestTimesAreFunctionsOfTheirDraw(t *testing.T) {
	const last = 1 - 1.0/(1<<53)
	for _, c := range []struct {
		what             string
		of               func(draw float64) time.Duration
		least, mid, most time.Duration
	}{
		{"goodbye", func(draw float64) time.Duration { return GoodbyeDelay(10*time.Second, 1000, draw) }, 0, 5 * time.Second, 10*time.Second - 1},
		{"retry", func(draw float64) time.Duration { return RetryHint(2*time.Second, draw) }, time.Second, 2 * time.Second, 3 * time.Second},
		{"age", func(draw float64) time.Duration { return Age(30*time.Minute, draw) }, 27 * time.Minute, 30 * time.Minute, 33 * time.Minute},
		{"no age", func(draw float64) time.Duration { return Age(-1, draw) }, 0, 0, 0},
	} {
		if a, b, z := c.of(0), c.of(0.5), c.of(last); a != c.least || b != c.mid || z > c.most || z < c.most-time.Microsecond {
			t.Errorf("%s: got %v, %v, %v, want %v, %v, %v", c.what, a, b, z, c.least, c.mid, c.most)
		}
	}
	if RefusedDraining.Retry(time.Second) != time.Second || refusedSubscribers.Retry(time.Second) != 2*time.Second {
		t.Error("want those whom a full gateway refuses to wait twice as long")
	}
}
