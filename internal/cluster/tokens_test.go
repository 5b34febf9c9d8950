package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
)

func TestTokenIsReviewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(ann, nil)
		tokens, text := newTokens(s), token(nil)
		if tokens.Remembers(text) != nil {
			t.Error("a token is known that was never reviewed")
		}
		who, err := tokens.Verify(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		want := &access.Principal{
			Mechanism: access.Kubernetes, Issuer: "cluster", Name: "ann", Groups: []string{"staff"}, Expires: time.Now().Add(longest),
			Claims: map[string]any{"uid": "u-1", "extra": map[string]any{"scopes": []any{"a"}}, "audiences": []any{"watchtide"}},
		}
		if !reflect.DeepEqual(who, want) {
			t.Errorf("got %+v, want %+v", who, want)
		}
		if again, err := tokens.Verify(t.Context(), text); again != who || err != nil || tokens.Remembers(text) != who {
			t.Errorf("again: %v, %v", again, err)
		}
		if !tokens.Accepts(who) || newTokens(s).config.Issuer != who.Issuer {
			t.Error("who was reviewed is not accepted")
		}
		if n := s.reviews(); n != 1 {
			t.Errorf("%d reviews, want 1", n)
		}
		time.Sleep(freshFor)
		if tokens.Remembers(text) != nil {
			t.Error("an answer is used for longer than a minute")
		}
		if _, err := tokens.Verify(t.Context(), text); err != nil || s.reviews() != 1 {
			t.Errorf("after a minute: %v", err)
		}
	})
}

// TestImplausibleTokens: what cannot be right never reaches the API server.
func TestImplausibleTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(ann, nil)
		tokens := newTokens(s)
		for name, c := range map[string]struct {
			token string
			want  access.Reason
		}{
			"no JWT":                      {"abc", access.InvalidToken},
			"three parts":                 {"a.b.c", access.InvalidToken},
			"too large":                   {token(map[string]any{"x": strings.Repeat("x", 17<<10)}), access.InvalidToken},
			"expired":                     {token(map[string]any{"exp": time.Now().Unix()}), access.TokenExpired},
			"not valid yet":               {token(map[string]any{"nbf": time.Now().Add(time.Minute).Unix()}), access.TokenNotYetValid},
			"an end that is none":         {token(map[string]any{"exp": "tomorrow"}), access.InvalidToken},
			"for somebody else":           {token(map[string]any{"aud": []string{"https://kubernetes.default.svc"}}), access.InvalidToken},
			"for somebody else, one text": {token(map[string]any{"aud": "vault"}), access.InvalidToken},
			"an audience that is no text": {token(map[string]any{"aud": 7}), access.InvalidToken},
		} {
			if _, err := tokens.Verify(t.Context(), c.token); reason(t, err) != c.want {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		}
		if n := s.reviews(); n != 0 {
			t.Errorf("%d reviews, want none", n)
		}
		for name, claims := range map[string]map[string]any{"no audience": {"aud": nil}, "no end": {"exp": nil}, "the second audience": {"aud": "other"}} {
			if _, err := tokens.Verify(t.Context(), token(claims)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestAnswersThatAllowNobody: the server must say that the token is genuine, for us, and of somebody.
func TestAnswersThatAllowNobody(t *testing.T) {
	many := make([]string, maxGroups+1)
	for i := range many {
		many[i] = fmt.Sprint("g", i)
	}
	for name, change := range map[string]func(*Review){
		"not authenticated":     func(r *Review) { r.Authenticated = false },
		"no audiences":          func(r *Review) { r.Audiences = nil },
		"other audiences":       func(r *Review) { r.Audiences = []string{"https://kubernetes.default.svc"} },
		"no name":               func(r *Review) { r.User.Name = "" },
		"anonymous":             func(r *Review) { r.User.Name = "system:anonymous" },
		"a group of nobody":     func(r *Review) { r.User.Groups = []string{"system:unauthenticated"} },
		"a name that is none":   func(r *Review) { r.User.Name = "\xff" },
		"extra that is none":    func(r *Review) { r.User.Extra = map[string][]string{"a": {"b", "\xff"}} },
		"too many groups":       func(r *Review) { r.User.Groups = many },
		"groups with long name": func(r *Review) { r.User.Groups = []string{strings.Repeat("x", maxUserBytes+1)} },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, r := &server{}, ann
			change(&r)
			s.answer(r, nil)
			tokens, text := newTokens(s), token(nil)
			for range 3 {
				if who, err := tokens.Verify(t.Context(), text); who != nil || reason(t, err) != access.InvalidToken {
					t.Errorf("%s: %v, %v", name, who, err)
				}
			}
			if n := s.reviews(); n != 1 {
				t.Errorf("%s: %d reviews, want 1", name, n)
			}
			s.answer(ann, nil)
			time.Sleep(refusedFor)
			if _, err := tokens.Verify(t.Context(), text); err != nil {
				t.Errorf("%s: later: %v", name, err)
			}
		})
	}
}

// TestExpiredTokenIsNotReplayed: an answer never outlives the token.
func TestExpiredTokenIsNotReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(ann, nil)
		tokens, text := newTokens(s), token(map[string]any{"exp": time.Now().Add(20 * time.Second).Unix()})
		who, err := tokens.Verify(t.Context(), text)
		if err != nil || !who.Expires.Equal(time.Now().Add(20*time.Second)) {
			t.Fatalf("%v, %v", who, err)
		}
		time.Sleep(20 * time.Second)
		s.answer(Review{}, errors.New("down"))
		var why *access.Refusal
		if _, err := tokens.Verify(t.Context(), text); !errors.As(err, &why) || why.Reason != access.TokenExpired || why.Expired != who {
			t.Errorf("a token that has expired: %v", err)
		}
		if tokens.Remembers(text) != nil || s.reviews() != 1 {
			t.Error("a token that has expired is used, or reviewed")
		}
	})
}

// TestServerDoesNotAnswer: what was known holds for some time, and then nobody is.
func TestServerDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(ann, nil)
		tokens, text := newTokens(s), token(nil)
		who, err := tokens.Verify(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		s.answer(Review{Authenticated: true, User: User{Name: "eve"}, Audiences: []string{"watchtide"}}, errors.New("503"))
		for began := time.Now(); time.Since(began) < freshFor+DefaultHold; time.Sleep(time.Second) {
			if again, err := tokens.Verify(t.Context(), text); again != who || err != nil {
				t.Fatalf("after %v: %v, %v", time.Since(began), again, err)
			}
			if _, err := tokens.Verify(t.Context(), token(map[string]any{"jti": time.Now().Unix()})); reason(t, err) != access.ReviewUnavailable {
				t.Fatalf("a new token: %v", err)
			}
		}
		if _, err := tokens.Verify(t.Context(), text); reason(t, err) != access.ReviewUnavailable {
			t.Errorf("after that: %v", err)
		}
		if n := s.reviews(); n > 1+maxFailures+int((freshFor+DefaultHold)/pause) {
			t.Errorf("%d reviews of a server that is down", n)
		}
		s.answer(ann, nil)
		time.Sleep(pause)
		if _, err := tokens.Verify(t.Context(), text); err != nil {
			t.Errorf("once it answers: %v", err)
		}
	})
}

type busy struct{ error }

func (busy) RetryAfter() time.Duration { return 30 * time.Second }

func TestServerWantsToBeLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(Review{}, busy{errors.New("429")})
		tokens := newTokens(s)
		for i := range 29 {
			if _, err := tokens.Verify(t.Context(), token(map[string]any{"jti": i})); reason(t, err) != access.ReviewUnavailable {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := s.reviews(); n != 1 {
			t.Errorf("%d reviews within 30 s, want 1", n)
		}
	})
}

// TestMadeUpTokens: 10,000 tokens at once that the server does not know are asked about at a bounded
// rate, and a bounded number is asked about, waits and is remembered.
func TestMadeUpTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var inside, most int
		s.token = func(context.Context, string) (Review, error) {
			s.mu.Lock()
			inside++
			most = max(most, inside)
			s.mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			s.mu.Lock()
			inside--
			s.mu.Unlock()
			return Review{}, nil
		}
		tokens, began := newTokens(s), time.Now()
		var all sync.WaitGroup
		for i := range 10_000 {
			all.Go(func() {
				_, err := tokens.Verify(t.Context(), token(map[string]any{"jti": i}))
				if why := reason(t, err); why != access.InvalidToken && why != access.ReviewUnavailable {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		reviews, took := s.reviews(), time.Since(began)
		if most > reviewsAtOnce || float64(reviews) > reviewsPerSecond*took.Seconds()+reviewsPerSecond/10+1 || reviews > reviewsAtOnce+reviewsWaiting {
			t.Errorf("%d reviews within %v, %d of them at once", reviews, took, most)
		}
		stats := tokens.Stats()
		if stats.AtOnce != 0 || stats.Cached > maxRefused || stats.Results[Refused] != uint64(reviews) || stats.Results[Crowded] != uint64(10_000-reviews) {
			t.Errorf("%+v after %d reviews", stats, reviews)
		}
	})
}

// TestOneReviewForManyRequests: requests with one token wait for one answer, also if the first of
// them leaves.
func TestOneReviewForManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.token = func(ctx context.Context, _ string) (Review, error) {
			select {
			case <-time.After(time.Second):
				return ann, nil
			case <-ctx.Done():
				return Review{}, ctx.Err()
			}
		}
		tokens, text := newTokens(s), token(nil)
		first, leave := context.WithCancel(t.Context())
		go func() { _, _ = tokens.Verify(first, text) }()
		synctest.Wait()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := tokens.Verify(t.Context(), text); err != nil {
					t.Error(err)
				}
			})
		}
		leave()
		all.Wait()
		if n := s.reviews(); n != 1 {
			t.Errorf("%d reviews, want 1", n)
		}
	})
}
