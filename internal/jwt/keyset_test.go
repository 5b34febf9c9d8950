package jwt

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/watchtide/watchtide/access"
)

// inBubble runs a test with a provider and its verifier in fake time.
func inBubble(t *testing.T, test func(t *testing.T, p *idp, v *Verifier, k signingKey)) {
	k := newKey(t, "k1")
	synctest.Test(t, func(t *testing.T) {
		p := &idp{t: t, keys: keySetOf(t, k)}
		v := p.remote(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { v.Run(ctx) })
		defer running.Wait()
		defer cancel()
		test(t, p, v, k)
	})
}

func verify(t *testing.T, v *Verifier, token string) error {
	t.Helper()
	_, err := v.Verify(t.Context(), token)
	return err
}

func TestKeysAreAskedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, k signingKey) {
		if err := verify(t, v, k.token(t, claimsOf(nil))); err != nil {
			t.Fatal(err)
		}
		if err := v.Ready(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if n := p.count(); n < 12 || n > 15 {
			t.Errorf("%d requests in an hour, want one every five minutes", n)
		}
	})
}

// TestUnknownKeysAskOnce: 10,000 unknown keys a second make one request in 10 s at most,
// and none while one is under way.
func TestUnknownKeysAskOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, k signingKey) {
		synctest.Wait()
		first := p.count()
		foreign := newKey(t, "?")
		payload := marshal(t, claimsOf(map[string]any{"exp": time.Now().Add(time.Hour).Unix()}))
		signature := foreign.sign(t, map[string]any{"alg": "ES256"}, payload)
		signature = signature[strings.LastIndexByte(signature, '.'):]
		var statuses [600]atomic.Int64
		var asking sync.WaitGroup
		const seconds = 12
		each := 10_000
		if testing.Short() {
			each = 500
		}
		for second := range seconds {
			for i := range each {
				token := encode(fmt.Appendf(nil, `{"alg":"ES256","kid":"k%d"}`, second*each+i)) + "." + encode(payload) + signature
				asking.Go(func() { statuses[reasonOf(t, verify(t, v, token)).Status()].Add(1) })
			}
			time.Sleep(time.Second)
		}
		asking.Wait()
		if n := p.count() - first; n != 2 {
			t.Errorf("%d requests in %d s", n, seconds)
		}
		if asked, later := statuses[401].Load(), statuses[503].Load(); asked < 2 || asked+later != int64(seconds*each) {
			t.Errorf("%d times 401, %d times 503", asked, later)
		}
		if err := verify(t, v, k.token(t, claimsOf(nil))); err != nil {
			t.Errorf("a known key meanwhile: %v", err)
		}
	})
}

// TestUnknownKeyIsRememberedAsSuch until the provider may be asked again.
func TestUnknownKeyIsRememberedAsSuch(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, k signingKey) {
		synctest.Wait()
		first, stray, other := p.count(), newKey(t, "k2"), newKey(t, "k3")
		for range 3 {
			if got := reasonOf(t, verify(t, v, stray.token(t, claimsOf(nil)))); got != access.UnknownKey {
				t.Errorf("got %q", got)
			}
		}
		err := verify(t, v, other.token(t, claimsOf(nil)))
		var r *access.Refusal
		if !errors.As(err, &r) || r.Reason != access.KeySetUnavailable || r.RetryAfter <= 0 || r.RetryAfter > retryEvery {
			t.Fatalf("another key: %+v", err)
		}
		if n := p.count() - first; n != 1 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(r.RetryAfter)
		if got := reasonOf(t, verify(t, v, other.token(t, claimsOf(nil)))); got != access.UnknownKey {
			t.Errorf("later: %q", got)
		}
	})
}

// TestRotation: a token with a new key is accepted at once, and one with a retired key
// no longer, even if it is remembered.
func TestRotation(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, old signingKey) {
		synctest.Wait()
		fresh := newKey(t, "k2")
		token := old.token(t, claimsOf(nil))
		if err := verify(t, v, token); err != nil {
			t.Fatal(err)
		}
		p.set(func() { p.keys = keySetOf(t, old, fresh) })
		if err := verify(t, v, fresh.token(t, claimsOf(nil))); err != nil {
			t.Errorf("a new key: %v", err)
		}
		if err := verify(t, v, token); err != nil {
			t.Errorf("the old key: %v", err)
		}
		p.set(func() { p.keys = keySetOf(t, fresh) })
		time.Sleep(refreshEvery + time.Second)
		if v.Remembers(token) != nil {
			t.Error("a token with a retired key is remembered")
		}
		if got := reasonOf(t, verify(t, v, token)); got != access.UnknownKey {
			t.Errorf("a retired key: %q", got)
		}
	})
}

// TestRotationAfterAnEarlyToken: a token that arrives before the first attempt does not
// delay the key of the next one.
func TestRotationAfterAnEarlyToken(t *testing.T) {
	old, fresh := newKey(t, "k1"), newKey(t, "k2")
	synctest.Test(t, func(t *testing.T) {
		p := &idp{t: t, keys: keySetOf(t, old)}
		v := p.remote(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() {
			if err := verify(t, v, old.token(t, claimsOf(nil))); err != nil {
				t.Errorf("the early token: %v", err)
			}
		})
		synctest.Wait()
		running.Go(func() { v.Run(ctx) })
		synctest.Wait()
		p.set(func() { p.keys = keySetOf(t, old, fresh) })
		if err := verify(t, v, fresh.token(t, claimsOf(nil))); err != nil {
			t.Errorf("a new key: %v", err)
		}
	})
}

// TestKeyReplacedUnderItsName: what was verified with the key before is forgotten.
func TestKeyReplacedUnderItsName(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, old signingKey) {
		fresh := newKey(t, old.id)
		token := old.token(t, claimsOf(nil))
		if err := verify(t, v, token); err != nil {
			t.Fatal(err)
		}
		p.set(func() { p.keys = keySetOf(t, fresh) })
		time.Sleep(refreshEvery + time.Second)
		if got := reasonOf(t, verify(t, v, token)); got != access.InvalidToken {
			t.Errorf("got %q", got)
		}
	})
}

// TestProviderIsDownAtStart: tokens get 503 until it answers, and never 401.
func TestProviderIsDownAtStart(t *testing.T) {
	k := newKey(t, "k1")
	synctest.Test(t, func(t *testing.T) {
		p := &idp{t: t, keys: keySetOf(t, k), down: true}
		v := p.remote(t)
		if err := v.Ready(); err == nil || !strings.Contains(err.Error(), testIssuer) {
			t.Errorf("before it was asked: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { v.Run(ctx) })
		defer running.Wait()
		defer cancel()
		for range 100 {
			if got := reasonOf(t, verify(t, v, k.token(t, claimsOf(nil)))); got != access.KeySetUnavailable {
				t.Errorf("got %q", got)
			}
			time.Sleep(time.Second)
		}
		if n := p.count(); n > 11 {
			t.Errorf("%d requests in 100 s", n)
		}
		if err := v.Ready(); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("ready: %v", err)
		}
		p.set(func() { p.down = false })
		time.Sleep(retryEvery + time.Second)
		if err := verify(t, v, k.token(t, claimsOf(nil))); err != nil || v.Ready() != nil {
			t.Errorf("after it is there: %v, %v", err, v.Ready())
		}
	})
}

// TestProviderIsDownLater: known keys are good for a day, and an unknown one is 503.
func TestProviderIsDownLater(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, k signingKey) {
		long := claimsOf(map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()})
		before := k.token(t, long)
		if err := verify(t, v, before); err != nil {
			t.Fatal(err)
		}
		p.set(func() { p.down = true })
		if got := reasonOf(t, verify(t, v, newKey(t, "k2").token(t, long))); got != access.KeySetUnavailable {
			t.Errorf("an unknown key: %q", got)
		}
		time.Sleep(goodFor - time.Minute)
		if err := verify(t, v, before); err != nil || v.Ready() != nil {
			t.Errorf("a remembered token: %v; ready: %v", err, v.Ready())
		}
		if err := verify(t, v, k.token(t, claimsOf(nil))); err != nil {
			t.Errorf("a new token: %v", err)
		}
		time.Sleep(2 * time.Minute)
		for _, token := range []string{before, k.token(t, claimsOf(nil))} {
			if got := reasonOf(t, verify(t, v, token)); got != access.KeySetUnavailable {
				t.Errorf("after a day: %q", got)
			}
		}
		if v.Ready() == nil {
			t.Error("ready after a day")
		}
		p.set(func() { p.down = false })
		time.Sleep(retryEvery)
		if err := verify(t, v, before); err != nil {
			t.Errorf("once it is there again: %v", err)
		}
	})
}

// TestSlowProvider: requests wait for it together, not longer than it may take, and not
// too many of them.
func TestSlowProvider(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, k signingKey) {
		synctest.Wait()
		hold := make(chan struct{})
		p.set(func() { p.hold = hold })
		defer close(hold)
		token := newKey(t, "k2").token(t, claimsOf(nil))
		began := time.Now()
		var atOnce, late atomic.Int64
		var asking sync.WaitGroup
		for range 3 * maxWaiting {
			asking.Go(func() {
				if got := reasonOf(t, verify(t, v, token)); got != access.KeySetUnavailable {
					t.Errorf("got %q", got)
				}
				if time.Since(began) == 0 {
					atOnce.Add(1)
				} else {
					late.Add(1)
				}
			})
		}
		synctest.Wait()
		if err := verify(t, v, k.token(t, claimsOf(nil))); err != nil {
			t.Errorf("a known key meanwhile: %v", err)
		}
		asking.Wait()
		if took := time.Since(began); took > fetchTimeout+time.Second || late.Load() != maxWaiting {
			t.Errorf("took %v, %d waited and %d did not", took, late.Load(), atOnce.Load())
		}
	})
}

func TestClientThatLeavesDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, _ signingKey) {
		synctest.Wait()
		hold := make(chan struct{})
		p.set(func() { p.hold = hold })
		defer close(hold)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := v.Verify(ctx, newKey(t, "k2").token(t, claimsOf(nil))); err == nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestWrongAnswers of a provider keep the keys that are known, and are reported.
func TestWrongAnswers(t *testing.T) {
	k := newKey(t, "k1")
	many := make([]signingKey, maxKeys+1)
	for i := range many {
		many[i] = newKey(t, fmt.Sprint(i))
	}
	crowd := string(keySetOf(t, many...))
	document := func(keys string) string {
		return `{"issuer":"` + testIssuer + `","jwks_uri":"` + keys + `"}`
	}
	for name, c := range map[string]struct {
		discovery, keys *http.Response
		want            string
	}{
		"discovery fails":          {discovery: answered(500, "boom"), want: "does not say where its keys are"},
		"discovery of another":     {discovery: answered(200, `{"issuer":"https://evil.example.com","jwks_uri":"https://evil.example.com/keys"}`), want: "issuer"},
		"discovery is redirected":  {discovery: redirect("https://evil.example.com/"), want: "does not say where its keys are"},
		"discovery is not JSON":    {discovery: answered(200, "<html>"), want: "does not say where its keys are"},
		"discovery without keys":   {discovery: answered(200, `{"issuer":"`+testIssuer+`"}`), want: "is not a URL"},
		"keys in plain text":       {discovery: answered(200, document("http://idp.example.com/keys")), want: "want https"},
		"keys in a file":           {discovery: answered(200, document("file:///etc/passwd")), want: "is not a URL"},
		"keys of another scheme":   {discovery: answered(200, document("gopher://idp.example.com/keys")), want: "want https"},
		"keys are missing":         {keys: answered(404, "no"), want: "answers"},
		"keys are redirected":      {keys: redirect(testIssuer + "/other"), want: "redirects are not followed"},
		"keys are not JSON":        {keys: answered(200, "<html>"), want: "not JSON"},
		"keys are none":            {keys: answered(200, `{"keys":[]}`), want: "none of the 0 keys"},
		"keys are many":            {keys: answered(200, crowd), want: "101 keys, of 100 at most"},
		"keys are huge":            {keys: answered(200, `{"keys":[`+strings.Repeat(" ", maxDocument)), want: "more than 524288 bytes"},
		"discovery is huge":        {discovery: answered(200, strings.Repeat(" ", maxDocument+1)), want: "too large"},
		"keys are for encryption":  {keys: answered(200, strings.ReplaceAll(string(keySetOf(t, k)), `"sig"`, `"enc"`)), want: "none of the 1 keys"},
		"keys are secret":          {keys: answered(200, `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"k1"}]}`), want: "none of the 1 keys"},
		"an error with everything": {discovery: answered(500, strings.Repeat("x", 10_000)), want: "…"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &idp{t: t, keys: keySetOf(t, k)}
				log := &bytes.Buffer{}
				v, err := New([]Issuer{{URL: testIssuer, Audience: testAudience, Algorithms: []string{"ES256"}, Transport: p}}, nil, slog.New(slog.NewTextHandler(log, nil)))
				if err != nil {
					t.Fatal(err)
				}
				i := v.issuers[testIssuer]
				i.keys.refresh(t.Context())
				if v.Ready() != nil {
					t.Fatal(v.Ready())
				}
				p.answer = func(r *http.Request) *http.Response {
					if strings.HasSuffix(r.URL.Path, "/openid-configuration") {
						return c.discovery
					}
					return c.keys
				}
				i.keys.refresh(t.Context())
				if i.keys.failure == nil || !strings.Contains(i.keys.failure.Error(), c.want) || len(i.keys.failure.Error()) > 1000 {
					t.Errorf("got %v, want %q", i.keys.failure, c.want)
				}
				if !strings.Contains(log.String(), "cannot be read") || strings.Count(log.String(), "\n") != 1 {
					t.Errorf("logged: %s", log)
				}
				if err := verify(t, v, k.token(t, claimsOf(nil))); err != nil {
					t.Errorf("the known key: %v", err)
				}
			})
		})
	}
}

func redirect(to string) *http.Response {
	a := answered(http.StatusFound, "")
	a.Header.Set("Location", to)
	return a
}

// TestTricklingProvider sends a byte a second, without end.
func TestTricklingProvider(t *testing.T) {
	inBubble(t, func(t *testing.T, p *idp, v *Verifier, k signingKey) {
		synctest.Wait()
		p.set(func() {
			p.answer = func(r *http.Request) *http.Response {
				a := answered(200, "")
				a.Body = &trickle{ctx: r.Context()}
				return a
			}
		})
		began := time.Now()
		if got := reasonOf(t, verify(t, v, newKey(t, "k2").token(t, claimsOf(nil)))); got != access.KeySetUnavailable || time.Since(began) > fetchTimeout+time.Second {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		began = time.Now()
		if got := reasonOf(t, verify(t, v, newKey(t, "k3").token(t, claimsOf(nil)))); got != access.KeySetUnavailable || time.Since(began) != 0 {
			t.Errorf("another one at once: %q after %v", got, time.Since(began))
		}
		if err := verify(t, v, k.token(t, claimsOf(nil))); err != nil {
			t.Error(err)
		}
	})
}

type trickle struct{ ctx context.Context }

func (b *trickle) Read(into []byte) (int, error) {
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(time.Second):
		into[0] = ' '
		return 1, nil
	}
}

func (b *trickle) Close() error { return nil }

// TestReloadKeepsWhatIsKnown of an issuer that has not changed.
func TestReloadKeepsWhatIsKnown(t *testing.T) {
	k := newKey(t, "k1")
	synctest.Test(t, func(t *testing.T) {
		p := &idp{t: t, keys: keySetOf(t, k)}
		issuer := Issuer{URL: testIssuer, Audience: testAudience, Algorithms: []string{"ES256"}, Transport: p}
		first, err := New([]Issuer{issuer}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { first.Run(ctx) })
		token := k.token(t, claimsOf(nil))
		if err := verify(t, first, token); err != nil {
			t.Fatal(err)
		}
		cancel()
		running.Wait()
		p.set(func() { p.down = true })
		second, err := New([]Issuer{issuer}, first, nil)
		if err != nil || second.Ready() != nil || second.Remembers(token) == nil {
			t.Errorf("the same issuer: %v, ready: %v", err, second.Ready())
		}
		issuer.Audience = "other"
		changed, err := New([]Issuer{issuer}, first, nil)
		if err != nil || changed.Ready() == nil || changed.Remembers(token) != nil {
			t.Errorf("another audience: %v, ready: %v", err, changed.Ready())
		}
		gone, err := New(nil, first, nil)
		if err != nil || gone.Remembers(token) != nil {
			t.Errorf("the issuer has gone: %v", err)
		}
		if got := reasonOf(t, verify(t, gone, token)); got != access.UnknownIssuer {
			t.Errorf("the issuer has gone: %q", got)
		}
	})
}

// TestEndOfRunLeavesNothingBehind: requests that wait are answered, and the next Run
// begins at once.
func TestEndOfRunLeavesNothingBehind(t *testing.T) {
	k := newKey(t, "k1")
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		p := &idp{t: t, keys: keySetOf(t, k), hold: hold}
		v := p.remote(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { v.Run(ctx) })
		var asking sync.WaitGroup
		asking.Go(func() {
			if got := reasonOf(t, verify(t, v, k.token(t, claimsOf(nil)))); got != access.KeySetUnavailable {
				t.Errorf("got %q", got)
			}
		})
		synctest.Wait()
		cancel()
		running.Wait()
		asking.Wait()
		close(hold)
		again, stop := context.WithCancel(t.Context())
		running.Go(func() { v.Run(again) })
		synctest.Wait()
		if err := v.Ready(); err != nil {
			t.Error(err)
		}
		stop()
		running.Wait()
	})
}

func TestKeysOfASet(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Skip(err)
	}
	good := newKey(t, "good")
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		good.public(),
		{Key: weak.Public(), KeyID: "weak"},
		{Key: newKey(t, "").private, KeyID: "private"},
		{Key: []byte("symmetric"), KeyID: "symmetric"},
		{Key: newKey(t, "").private.Public(), KeyID: "hs", Algorithm: "HS256"},
		{Key: newKey(t, "").private.Public(), KeyID: "other", Algorithm: "ES384"},
	}}
	for range 2 * maxSameID {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: newKey(t, "").private.Public(), KeyID: "same"})
	}
	k, err := parseKeys(marshal(t, set))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{"good": 1, "weak": 0, "private": 0, "symmetric": 0, "hs": 0, "other": 0, "same": maxSameID, "": 0} {
		if got := k.candidates(id, "ES256"); len(got) != want {
			t.Errorf("%q: %d keys, want %d", id, len(got), want)
		}
	}
	if got := k.candidates("good", "ES384"); len(got) != 0 {
		t.Error("a P-256 key for ES384")
	}
	if _, err := parseKeys([]byte(`{"keys":[{"kty":"new"},{},1,null,` + string(keySetOf(t, good)[9:]))); err != nil {
		t.Errorf("a set with keys of another time: %v", err)
	}
}

// FuzzKeys looks for key sets that make the parser panic, or that have keys of no use.
func FuzzKeys(f *testing.F) {
	f.Add(keySetOf(f, newKey(f, "a"), newKey(f, "b")))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := parseKeys(data)
		if err != nil {
			return
		}
		for _, one := range k.all {
			if !isUsable(one.Key) || !k.digests[one.digest] {
				t.Errorf("%+v", one)
			}
		}
	})
}

// TestCacheIsBounded in bytes and in number, and keeps what was used last.
func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	hash := func(i int) tokenHash { return tokenHash{byte(i), byte(i >> 8), byte(i >> 16)} }
	small, large := &access.Principal{}, &access.Principal{Claims: map[string]any{"x": strings.Repeat("x", 6*maxToken)}}
	for i := range 3 * maxCached {
		c.add(hash(i), &verified{principal: small})
	}
	if c.entries.Len() > maxCached || c.bytes != c.entries.Len()*(bytesPerToken+small.Size()) {
		t.Errorf("%d entries of %d bytes", c.entries.Len(), c.bytes)
	}
	first := hash(3*maxCached - 1)
	for i := range 3000 {
		if c.get(first) == nil {
			t.Fatalf("the entry that is used most was dropped after %d", i)
		}
		c.add(hash(i), &verified{principal: large})
		c.add(hash(i), &verified{principal: large})
		if c.bytes > maxCachedBytes {
			t.Fatalf("%d bytes", c.bytes)
		}
	}
	for i := range 3 * maxCached {
		c.remove(hash(i))
	}
	if c.bytes != 0 || c.entries.Len() != 0 {
		t.Errorf("the empty cache has %d bytes in %d entries", c.bytes, c.entries.Len())
	}
}
