package gateway

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/cluster"
)

// tokenServer is an API server that knows all tokens for a while.
type tokenServer struct {
	cluster.Server
	revoked atomic.Bool
	groups  atomic.Value // of the user
}

func (s *tokenServer) ReviewToken(_ context.Context, _ string, audiences []string) (cluster.Review, error) {
	groups, _ := s.groups.Load().(string)
	user := cluster.User{Name: "system:serviceaccount:shop:web", UID: "u-1", Groups: []string{groups}, Extra: map[string][]string{"pod": {"a", "b"}}}
	return cluster.Review{Authenticated: !s.revoked.Load(), User: user, Audiences: audiences}, nil
}

// TestStreamsOfALostClusterToken: once the cluster does not know a token any more, the streams that it has opened end, and so do
// those of its sessions and tickets, whatever the rules of their watch are.
func TestStreamsOfALostClusterToken(t *testing.T) {
	server := &tokenServer{}
	server.groups.Store("staff")
	r := newGuarded(t, func(c *Config) {
		c.Access.Credentials.Keys = []access.SealKey{{1}}
		c.Access.Credentials.Cluster = cluster.NewTokens(cluster.TokensConfig{
			Server: server, Issuer: "prod", Audiences: []string{"watchtide"}, Refresh: 300 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		})
	})
	t.Cleanup(r.gateway.learn(t.Context()))
	text := base64.RawURLEncoding.EncodeToString
	r.tokens["web"] = text([]byte(`{"alg":"RS256"}`)) + "." + text(fmt.Appendf(nil, `{"iss":"https://kubernetes.default.svc","aud":["watchtide"],"exp":%d}`, time.Now().Add(2*time.Hour).Unix())) + "." + text([]byte("s"))
	made := r.send(http.MethodPost, "/v1/tickets", `{"watches":["orders"]}`, append(r.as("web"), "Content-Type: application/json")...)
	ticket := between(made.text, `"ticket":"`, `"`)
	if ticket == "" {
		t.Fatalf("%s %s", made.Status, made.text)
	}
	stays := r.follow("sam", "/v1/events?watch=orders", "identity")
	stays.hidden = []string{"goodbye"}
	byToken := r.follow("web", "/v1/events?watch=orders", "identity")
	byTicket := r.follow("nobody", "/v1/events?watch=orders&ticket="+ticket, "identity")
	byTicket.hidden = nil
	for _, l := range []*live{stays, byToken, byTicket} {
		l.until("end_of_snapshot")
	}
	server.groups.Store("guests") // who may see nothing of the watch as a whole
	byToken.until(`"type":"reset"`)
	byTicket.until(`"type":"reset"`)
	server.revoked.Store(true)
	began := time.Now()
	byToken.until(`"reason":"revoked"`)
	byTicket.until(`"reason":"revoked"`)
	t.Logf("ended after %s", time.Since(began))
	if got := r.get("/v1/watches/orders/resources?ticket=" + ticket); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("the ticket of a token that is lost: %s", got.Status)
	}
	r.put("o_1", `{"tenant":"acme"}`)
	stays.until(`"tenant":"acme"}`)
}
