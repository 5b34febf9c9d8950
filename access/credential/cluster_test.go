package credential

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/cluster"
)

// reviewer is an API server that knows one token.
type reviewer struct {
	cluster.Server
	token string
	asked atomic.Int64
}

func (r *reviewer) ReviewToken(_ context.Context, token string, audiences []string) (cluster.Review, error) {
	r.asked.Add(1)
	if token != r.token {
		return cluster.Review{}, nil
	}
	return cluster.Review{Authenticated: true, User: cluster.User{Name: "system:serviceaccount:shop:web", UID: "u-1", Groups: []string{"system:serviceaccounts"}}, Audiences: audiences}, nil
}

// clusterToken returns a token of the cluster; n tells it from others.
func clusterToken(n int) string {
	text := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"iss":"https://kubernetes.default.svc","aud":["watchtide"],"exp":%d,"n":%d}`, time.Now().Add(2*time.Hour).Unix(), n)
	return text([]byte(`{"alg":"RS256"}`)) + "." + text([]byte(claims)) + "." + text([]byte("signature"))
}

func tokensOf(r *reviewer, audience string) *cluster.Tokens {
	return cluster.NewTokens(cluster.TokensConfig{Server: r, Issuer: "prod", Audiences: []string{audience}, Log: slog.New(slog.DiscardHandler)})
}

// TestTokenOfACluster: a user of a cluster has sessions and tickets like any other.
func TestTokenOfACluster(t *testing.T) {
	server := &reviewer{token: clusterToken(0)}
	r := newRig(t, func(c *Config) { c.Cluster = tokensOf(server, "watchtide") })
	const want = "kubernetes system:serviceaccount:shop:web"
	bearer := withBearer(server.token)
	if got := r.who(t, bearer); got != want {
		t.Fatalf("got %s", got)
	}
	withSession, withTicket := newRequest("/v1/events"), newRequest("/v1/events?ticket="+r.ticket(t, bearer, "pods"))
	withSession.AddCookie(r.session(t, bearer))
	for name, request := range map[string]*http.Request{"session": withSession, "ticket": withTicket} {
		id, err := r.Identify(request)
		if err != nil || id.Name != "system:serviceaccount:shop:web" || id.Claims["uid"] != "u-1" || id.Issuer != "prod" || id.Expires.After(time.Now().Add(time.Hour)) {
			t.Fatalf("%s: %+v, %v", name, id, err)
		}
		if again, err := r.Again(id); again != id || err != nil {
			t.Errorf("%s: again: %v", name, err)
		}
		for change, tokens := range map[string]*cluster.Tokens{"other audiences": tokensOf(server, "other"), "no cluster": nil} {
			later := newAuthenticator(t, Config{Keys: []access.SealKey{testKey}, Cluster: tokens, Previous: r.Authenticator})
			if _, err := later.Again(id); err == nil {
				t.Errorf("%s: accepted again with %s", name, change)
			}
			if _, err := later.Identify(request); err == nil {
				t.Errorf("%s: accepted with %s", name, change)
			}
		}
	}
	if keys := mustIdentify(t, r, bearer).RevocationKeys(); keys[0] != "subject/prod/system:serviceaccount:shop:web" {
		t.Errorf("revoked by %v", keys)
	}
	if n := server.asked.Load(); n != 1 {
		t.Errorf("%d reviews, want 1", n)
	}
}

func mustIdentify(t *testing.T, r rig, request *http.Request) *Identity {
	t.Helper()
	id, err := r.Identify(request)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestOtherTokensAreNotReviewed: neither those of an OpenID provider, nor static ones.
func TestOtherTokensAreNotReviewed(t *testing.T) {
	server := &reviewer{}
	r := newRig(t, func(c *Config) { c.Cluster = tokensOf(server, "watchtide") })
	for _, c := range []struct{ token, want string }{
		{r.ci, "token ci"},
		{r.provider.Token(t, nil), "jwt ann"},
		{r.provider.Token(t, map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), "token_expired"},
		{"abc", "invalid_token"},
	} {
		if got := r.who(t, withBearer(c.token)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if n := server.asked.Load(); n != 0 {
		t.Errorf("%d reviews, want none", n)
	}
}

// TestMadeUpTokensOfAnAddress: an address that sends 10,000 made-up tokens has as many reviewed as it
// may send invalid credentials, and others at the address go on.
func TestMadeUpTokensOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &reviewer{token: clusterToken(0)}
		a := newAuthenticator(t, Config{Keys: []access.SealKey{testKey}, Cluster: tokensOf(server, "watchtide")})
		if _, err := a.Identify(withBearer(server.token)); err != nil {
			t.Fatal(err)
		}
		for i := range 10_000 {
			if _, err := a.Identify(withBearer(clusterToken(i + 1))); err == nil {
				t.Fatal("a made-up token is accepted")
			}
		}
		if _, err := a.Identify(withBearer(server.token)); err != nil {
			t.Errorf("who was known before: %v", err)
		}
		if n := server.asked.Load(); n != 1+failuresAtOnce {
			t.Errorf("%d reviews, want %d", n, 1+failuresAtOnce)
		}
	})
}
