package gateway

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
func distinctClient(i int) client {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(a[4:], uint32(i))
	return clientOf(netip.AddrFrom16(a))
}

func mustEnter(t *testing.T, a *admission, c client, watches ...string) guest {
	t.Helper()
	place, refused := a.enter(c, watches)
	if refused != nil {
		t.Fatalf("refused: %v", refused)
	}
	return place
}

func wantRefused(t *testing.T, a *admission, c client, watches []string, reason refusalReason, text string) {
	t.Helper()
	_, refused := a.enter(c, watches)
	if refused == nil || refused.reason != reason || !strings.Contains(refused.Error(), text) {
		t.Errorf("refusal %v, want %q with %q in it", refused, reason, text)
	}
}

func TestAdmissionLimit(t *testing.T) {
	a := newAdmission(limits{total: 2}, 0)
	first := mustEnter(t, a, distinctClient(1), "a")
	mustEnter(t, a, distinctClient(2), "a")
	wantRefused(t, a, distinctClient(3), []string{"a"}, refusedSubscribers, "2 streams are open, of 2 at most")
	a.leave(first)
	mustEnter(t, a, distinctClient(3), "a")
	if a.count() != 2 {
		t.Fatal("a place that was left was not given again")
	}
}

func TestAdmissionLimitOfAClient(t *testing.T) {
	a := newAdmission(limits{perClient: 2}, 0)
	greedy := clientOf(netip.MustParseAddr("2001:db8:1:2:3:4:5:6"))
	neighbour := clientOf(netip.MustParseAddr("2001:db8:1:2::1"))
	first := mustEnter(t, a, greedy, "a")
	mustEnter(t, a, neighbour, "a", "b")
	wantRefused(t, a, greedy, []string{"c"}, refusedClient, "client 2001:db8:1:2::/64 has 2 streams open, of 2 at most")
	mustEnter(t, a, nameless, "a")
	a.leave(first)
	mustEnter(t, a, greedy, "a")
}

// TestAdmissionLimitOfAWatch checks that a stream of several watches counts for each.
func TestAdmissionLimitOfAWatch(t *testing.T) {
	a := newAdmission(limits{perWatch: 2}, 0)
	both := mustEnter(t, a, nameless, "a", "b")
	mustEnter(t, a, nameless, "b")
	wantRefused(t, a, nameless, []string{"a", "b"}, refusedWatch, `watch "b" has 2 streams, of 2 at most`)
	mustEnter(t, a, nameless, "a") // the refusal has counted nothing
	a.leave(both)
	mustEnter(t, a, nameless, "b", "a")
}

// TestAdmissionForgets checks random arrivals and departures against a simple model,
// and that nothing remains of the streams that left.
func TestAdmissionForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits{
			total:     rapid.IntRange(0, 20).Draw(t, "total"),
			perClient: rapid.IntRange(0, 4).Draw(t, "perClient"),
			perWatch:  rapid.IntRange(0, 8).Draw(t, "perWatch"),
		}
		a := newAdmission(l, 0)
		type stream struct {
			place   guest
			client  client
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
				room := !reached(len(open), l.total) && !reached(ofClient, l.perClient)
				for _, w := range s.watches {
					room = room && !reached(ofWatch[w], l.perWatch)
				}
				place, refused := a.enter(s.client, s.watches)
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
				a.leave(open[i].place)
				open = append(open[:i], open[i+1:]...)
			},
			"": func(t *rapid.T) {
				clients := map[client]bool{}
				for _, o := range open {
					clients[o.client] = true
				}
				if a.count() != len(open) || a.clientCount() != len(clients) {
					t.Fatalf("%d streams of %d clients are counted, want %d of %d", a.count(), a.clientCount(), len(open), len(clients))
				}
			},
		})
		for _, o := range open {
			a.leave(o.place)
		}
		if len(a.clients.rows)+len(a.parties.rows)+len(a.watches)+a.open > 0 {
			t.Fatalf("left behind: %+v, %+v, %v, %d open", a.clients, a.parties, a.watches, a.open)
		}
	})
}

func TestAdmissionDrain(t *testing.T) {
	a := newAdmission(limits{}, time.Second)
	first, second := mustEnter(t, a, nameless, "a"), mustEnter(t, a, nameless, "a")
	a.drain()
	a.drain() // a second signal changes nothing
	if !a.isDraining() {
		t.Fatal("not draining")
	}
	wantRefused(t, a, nameless, []string{"a"}, refusedDraining, "shutting down")
	a.leave(first)
	if closed(a.idle) {
		t.Fatal("idle with one stream open")
	}
	a.leave(second)
	if !closed(a.idle) {
		t.Fatal("not idle with no stream open")
	}
}

func TestAdmissionDrainOfNobody(t *testing.T) {
	a := newAdmission(limits{}, time.Second)
	a.drain()
	if !closed(a.idle) {
		t.Fatal("not idle with no stream open")
	}
}

func TestGoodbyesAreSpread(t *testing.T) {
	a := newAdmission(limits{}, 10*time.Second)
	var early, late int
	for range 1000 {
		switch d := a.goodbyeDelay(); {
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
	if d := newAdmission(limits{}, -1).goodbyeDelay(); d != 0 {
		t.Errorf("%s with no spread", d)
	}
}

// BenchmarkAdmission measures one stream entering and leaving, among many.
func BenchmarkAdmission(b *testing.B) {
	for _, clients := range []int{1, 50_000} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			a := newAdmission(limits{total: 1 << 30, perClient: 1 << 30, perWatch: 1 << 30}, 0)
			watches := []string{"services"}
			for i := range 50_000 {
				_, _ = a.enter(distinctClient(i%clients), watches)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				place, _ := a.enter(distinctClient(i%clients), watches)
				a.leave(place)
			}
		})
	}
}
