package limits

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// isGranted reports whether a claim no longer waits.
func (c *Claim) isGranted() bool { return c.granted == nil || isClosed(c.granted) }

// checkBudget compares a budget with the existing claims.
func checkBudget(t *rapid.T, b *Budget, claims []*Claim) {
	taken, waiting, of := int64(0), 0, map[Client]int64{}
	for _, c := range claims {
		if !c.isGranted() {
			waiting++
			continue
		}
		taken += c.bytes
		of[c.account.client] += c.bytes
	}
	if nowTaken, nowWaiting := b.Now(); nowTaken != taken || nowWaiting != waiting || taken > b.size {
		t.Fatalf("%d of %d bytes are taken and %d claims wait; the claims have %d, and %d wait", nowTaken, b.size, nowWaiting, taken, waiting)
	}
	for c, n := range of {
		if n > b.share {
			t.Fatalf("client %s has %d bytes, its share is %d", c, n, b.share)
		}
	}
	for e := b.queue.Front(); e != nil; e = e.Next() {
		a := e.Value.(*account)
		c := a.waiting.Front().Value.(*Claim)
		if a.taken+c.bytes > b.share {
			continue
		}
		if b.taken+c.bytes <= b.size {
			t.Fatalf("the first claim, of %d bytes, waits: %d of %d are taken", c.bytes, b.taken, b.size)
		}
		return
	}
}

// TestBudget plays random requests, and ends all of them at the end.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBudget(rapid.Int64Range(1, 100).Draw(t, "size"))
		var claims []*Claim
		who := rapid.Custom(func(t *rapid.T) Client { return Client{15: rapid.Byte().Draw(t, "client") % 6} })
		bytes := rapid.Int64Range(0, 40)
		pick := func(t *rapid.T) int {
			if len(claims) == 0 {
				t.Skip("there is no claim")
			}
			return rapid.IntRange(0, len(claims)-1).Draw(t, "claim")
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) { claims = append(claims, b.ask(who.Draw(t, "who"), bytes.Draw(t, "bytes"))) },
			"try": func(t *rapid.T) {
				if c := b.TryTake(who.Draw(t, "who"), bytes.Draw(t, "bytes")); c != nil {
					claims = append(claims, c)
				}
			},
			"shrink": func(t *rapid.T) {
				if c := claims[pick(t)]; c.isGranted() {
					c.Shrink(bytes.Draw(t, "to"))
				}
			},
			"release": func(t *rapid.T) {
				i := pick(t)
				claims[i].Release()
				claims[i].Release()
				claims = slices.Delete(claims, i, i+1)
			},
			"": func(t *rapid.T) { checkBudget(t, b, claims) },
		})
		for len(claims) > 0 {
			claims[0].Release()
			claims = claims[1:]
			checkBudget(t, b, claims)
		}
		if len(b.accounts) != 0 {
			t.Fatalf("%d clients without a claim have an account", len(b.accounts))
		}
	})
}

// TestBudgetOfOneClient checks that a client that has used up its share delays only
// itself.
func TestBudgetOfOneClient(t *testing.T) {
	b := NewBudget(100)
	greedy, modest := Client{15: 1}, Client{15: 2}
	first := b.ask(greedy, 1000)
	if !first.isGranted() || first.bytes != 25 {
		t.Fatalf("more than the share: %d bytes", first.bytes)
	}
	second := b.ask(greedy, 1)
	if second.isGranted() || b.TryTake(greedy, 1) != nil {
		t.Error("a client has more than its share")
	}
	if other := b.TryTake(modest, 25); other == nil {
		t.Error("another client waits")
	}
	first.Release()
	if !second.isGranted() {
		t.Error("the next claim still waits")
	}
}

// TestBudgetLargeClaim checks that later small claims do not starve a large one.
func TestBudgetLargeClaim(t *testing.T) {
	b := NewBudget(8)
	var small []*Claim
	for i := range 8 {
		small = append(small, b.ask(Client{15: byte(i)}, 1))
	}
	large, late := b.ask(Client{15: 100}, 2), b.ask(Client{15: 101}, 1)
	small[0].Release()
	if large.isGranted() || late.isGranted() {
		t.Error("there is room for one byte, and the first that waits wants two")
	}
	small[1].Release()
	if !large.isGranted() || late.isGranted() {
		t.Errorf("granted: large %t, late %t", large.isGranted(), late.isGranted())
	}
}

// TestBudgetCancelled checks that a request whose client disconnects no longer
// waits, and takes nothing.
func TestBudgetCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(4)
		held, _ := b.Take(t.Context(), Client{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { _, err := b.Take(ctx, Client{}, 1); failed <- err }()
		synctest.Wait()
		if _, waiting := b.Now(); waiting != 1 {
			t.Errorf("%d wait", waiting)
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		held.Release()
		if _, err := b.Take(ctx, Client{}, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before: %v", err)
		}
		if taken, waiting := b.Now(); taken != 0 || waiting != 0 {
			t.Errorf("%d bytes are taken, %d wait", taken, waiting)
		}
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
