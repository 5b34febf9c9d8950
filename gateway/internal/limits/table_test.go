package limits

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"pgregory.net/rapid"
)

func named(name string) *credential.Identity {
	return &credential.Identity{Principal: &access.Principal{Mechanism: access.Token, Name: name}}
}

func from(address string) *credential.Identity {
	return &credential.Identity{Principal: access.Nobody(), Address: netip.MustParseAddr(address)}
}

// TestStreamsOfAPrincipal checks random arrivals and departures against a model, and that
// nothing remains of streams that have ended.
func TestStreamsOfAPrincipal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 3).Draw(t, "limit")
		table := NewQuotas(QuotaLimits{Streams: limit})
		open := map[string]int{}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
				refused := table.Enter(named(name))
				if room := limit == 0 || open[name] < limit; room != (refused == nil) {
					t.Fatalf("room %t, refusal %v", room, refused)
				}
				if refused == nil {
					open[name]++
				} else if refused.Reason != RefusedPrincipal || refused.Count != open[name] {
					t.Fatalf("refusal %+v", refused)
				}
			},
			"leave": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
				if open[name] == 0 {
					t.Skip("nobody")
				}
				open[name]--
				table.Leave(named(name))
			},
			"reconfigure": func(t *rapid.T) {
				limit = rapid.IntRange(0, 3).Draw(t, "limit")
				table.Reconfigure(QuotaLimits{Streams: limit})
			},
		})
		for name, n := range open {
			for range n {
				table.Leave(named(name))
			}
		}
		if len(table.streams) > 0 {
			t.Fatalf("not released: %v", table.streams)
		}
	})
}

// TestWhoIsNotCounted has as many streams as it likes.
func TestWhoIsNotCounted(t *testing.T) {
	table := NewQuotas(QuotaLimits{Streams: 1})
	for range 3 {
		if table.Enter(nil) != nil || table.Enter(from("192.0.2.1")) != nil || (*Quotas)(nil).Enter(named("a")) != nil {
			t.Fatal("refused")
		}
	}
	table.Leave(nil)
	table.Leave(from("192.0.2.1"))
	(*Quotas)(nil).Leave(named("a"))
}

// TestRequestsOfAPrincipal: some come at once, then as many as the limit; others have their
// own.
func TestRequestsOfAPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewQuotas(QuotaLimits{RequestsPerSecond: 5})
		served := func(who *credential.Identity, requests int) (n int) {
			for range requests {
				if table.Request(who) == 0 {
					n++
				}
			}
			return n
		}
		for _, who := range []*credential.Identity{named("a"), named("b"), from("192.0.2.1"), from("2001:db8::1")} {
			if n := served(who, 1000); n != 50 {
				t.Errorf("%+v: %d requests at once, want 50", who, n)
			}
		}
		if n := served(from("2001:db8::2"), 10); n != 0 {
			t.Errorf("%d requests of another address of the same network", n)
		}
		if wait := table.Request(named("a")); wait <= 0 || wait > 200*time.Millisecond {
			t.Errorf("a is to wait for %s", wait)
		}
		time.Sleep(2 * time.Second)
		if n := served(named("a"), 1000); n != 10 {
			t.Errorf("%d requests after 2 s, want 10", n)
		}
		table.Reconfigure(QuotaLimits{RequestsPerSecond: 100})
		table.Request(named("a")) // from now on
		time.Sleep(time.Second)
		if n := served(named("a"), 1000); n < 100 || n > 110 {
			t.Errorf("%d requests in a second after a reload, want 100", n)
		}
		table.Reconfigure(QuotaLimits{})
		if n := served(named("a"), 5000); n != 5000 {
			t.Errorf("%d requests without a limit", n)
		}
	})
}

// TestRatesAreBounded, and addresses do not make principals forgotten.
func TestRatesAreBounded(t *testing.T) {
	synctest.Test(t, testRatesAreBounded)
}

func testRatesAreBounded(t *testing.T) {
	table := NewQuotas(QuotaLimits{RequestsPerSecond: 1})
	for range 20 {
		table.Request(named("a"))
	}
	for i := range mostRates + 10 {
		table.Request(from(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)))
	}
	if table.addresses.Len() != mostRates || table.principals.Len() != 1 || table.Request(named("a")) == 0 {
		t.Errorf("%d addresses, %d principals", table.addresses.Len(), table.principals.Len())
	}
}

// TestPayer: a principal pays wherever it comes from, and is nobody's address.
func TestPayer(t *testing.T) {
	one, other := ClientOf(netip.MustParseAddr("192.0.2.1")), ClientOf(netip.MustParseAddr("192.0.2.2"))
	if Payer(named("a"), one) != Payer(named("a"), other) || Payer(named("a"), one) == Payer(named("b"), one) || Payer(named("a"), one) == one {
		t.Error("a principal is not told apart")
	}
	if Payer(nil, one) != one || Payer(from("192.0.2.1"), one) != one {
		t.Error("an address does not pay for itself")
	}
}

func BenchmarkRequest(b *testing.B) {
	table, who := NewQuotas(QuotaLimits{RequestsPerSecond: 1 << 30}), named("ci")
	b.ReportAllocs()
	for b.Loop() {
		table.Request(who)
	}
}
