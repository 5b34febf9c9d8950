package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an API server in memory, each of whose answers is a function.
type server struct {
	mu sync.Mutex
	// Guarded by mu.
	token func(ctx context.Context, token string) (Review, error)
	asked int // reviews of tokens
	right func(ctx context.Context, u User, a Attributes) (bool, error)
	names func() ([]string, error)
	rules func(ctx context.Context, changed func(namespace string)) error // nil: they cannot be followed
}

// ReviewAccess and Namespaces implement Server.
func (s *server) ReviewAccess(ctx context.Context, u User, a Attributes) (bool, error) {
	s.mu.Lock()
	answer := s.right
	s.mu.Unlock()
	return answer(ctx, u, a)
}

func (s *server) Namespaces(_ context.Context, most int) ([]string, error) {
	s.mu.Lock()
	answer := s.names
	s.mu.Unlock()
	names, err := answer()
	return names[:min(most, len(names))], err
}

// FollowRules implements Server.
func (s *server) FollowRules(ctx context.Context, changed func(namespace string)) error {
	s.mu.Lock()
	follow := s.rules
	s.mu.Unlock()
	if follow == nil {
		return errors.New("the rules are hidden")
	}
	return follow(ctx, changed)
}

func (s *server) ReviewToken(ctx context.Context, token string, _ []string) (Review, error) {
	s.mu.Lock()
	s.asked++
	answer := s.token
	s.mu.Unlock()
	return answer(ctx, token)
}

// reviews returns how many tokens were reviewed since the last call.
func (s *server) reviews() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.asked
	s.asked = 0
	return n
}

func (s *server) answer(r Review, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = func(context.Context, string) (Review, error) { return r, err }
}

var ann = Review{Authenticated: true, User: User{Name: "ann", UID: "u-1", Groups: []string{"staff"}, Extra: map[string][]string{"scopes": {"a"}}}, Audiences: []string{"watchtide"}}

func newTokens(s Server) *Tokens {
	return NewTokens(TokensConfig{Server: s, Issuer: "cluster", Audiences: []string{"watchtide", "other"}, Log: slog.New(slog.DiscardHandler)})
}

// token returns a token with claims, whose signature nobody checks here; nil removes a claim.
func token(claims map[string]any) string {
	all := map[string]any{"iss": "https://kubernetes.default.svc", "aud": []string{"watchtide"}, "sub": "ann", "exp": time.Now().Add(3 * time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	text := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return text(map[string]any{"alg": "RS256", "kid": "k"}) + "." + text(all) + "." + text("signature")
}

// reason returns why a token is refused; empty: it is not.
func reason(t testing.TB, err error) access.Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	var why *access.Refusal
	if !errors.As(err, &why) {
		t.Fatalf("%T: %v", err, err)
	}
	return why.Reason
}
