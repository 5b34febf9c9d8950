//go:build servers

package provider

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// addressVariable has the address to listen on, in the environment of the child.
const addressVariable = "WATCHTIDE_TEST_PROVIDER"

// The gateway as a client that signs users in.
const (
	dashboard       = "dashboard"
	dashboardSecret = "very/secret+too"
	publicURL       = "http://localhost:9999"
)

// serve is the child: the provider, until it is killed or its parent ends. It prints its
// address.
func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	issuer := "http://" + listener.Addr().String() + "/"
	storage.RegisterClients(storage.WebClient(dashboard, dashboardSecret, publicURL+credential.CallbackPath))
	keys := &rotating{Storage: storage.NewStorage(storage.NewUserStore(issuer))}
	if err := keys.rotate(false); err != nil {
		return err
	}
	provider := exampleop.SetupServer(issuer, keys, slog.New(slog.DiscardHandler), false)
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: &misbehaving{next: provider, keys: keys}, ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}

// rotating is the storage of the example, with keys that can be replaced, and with
// tokens for this gateway.
type rotating struct {
	*storage.Storage

	mu sync.Mutex
	// Guarded by mu.
	keys []*signingKey // the last one signs
}

// rotate adds a key that signs from now on, and keeps or retires the others.
func (r *rotating) rotate(retire bool) error {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if retire {
		r.keys = nil
	}
	r.keys = append(r.keys, &signingKey{rand.Text(), private})
	return nil
}

// SigningKey returns the newest key.
func (r *rotating) SigningKey(context.Context) (op.SigningKey, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[len(r.keys)-1], nil
}

// KeySet returns the public keys.
func (r *rotating) KeySet(context.Context) (out []op.Key, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.keys {
		out = append(out, publicKey{k})
	}
	return out, nil
}

// ClientCredentials returns a client whose access tokens are JWTs.
func (r *rotating) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	c, err := r.Storage.ClientCredentials(ctx, id, secret)
	if err != nil {
		return nil, err
	}
	return clientOfJWTs{c}, nil
}

// ClientCredentialsTokenRequest asks for a token for the audience that the client names
// as a scope.
func (r *rotating) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	return &oidc.JWTTokenRequest{Subject: id, Audience: scopes, Scopes: scopes}, nil
}

// GetPrivateClaimsFromScopes returns groups as Keycloak has them.
func (r *rotating) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return map[string]any{"realm_access": map[string]any{"roles": []string{"staff"}}}, nil
}

type clientOfJWTs struct{ op.Client }

// AccessTokenType returns that of a JWT.
func (clientOfJWTs) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

// SignatureAlgorithm returns that of all keys.
func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }

// Key returns the private key.
func (k *signingKey) Key() any { return k.key }

// ID returns the name of the key.
func (k *signingKey) ID() string { return k.id }

type publicKey struct{ of *signingKey }

// ID returns the name of the key.
func (k publicKey) ID() string { return k.of.id }

// Algorithm returns that of all keys.
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }

// Use returns what the key is for.
func (k publicKey) Use() string { return "sig" }

// Key returns the public key.
func (k publicKey) Key() any { return k.of.key.Public() }

// misbehaving answers requests for keys as it is told to.
type misbehaving struct {
	next http.Handler
	keys *rotating

	mu sync.Mutex
	// Guarded by mu.
	how   string
	asked int
}

// ServeHTTP answers one request.
func (m *misbehaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if what, found := strings.CutPrefix(r.URL.Path, "/control/"); found {
		m.control(w, what)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/keys") {
		m.next.ServeHTTP(w, r)
		return
	}
	m.mu.Lock()
	m.asked++
	how := m.how
	m.mu.Unlock()
	switch how {
	case "redirect":
		http.Redirect(w, r, "/elsewhere/keys", http.StatusFound)
	case "huge":
		fmt.Fprintf(w, `{"keys":[%s]}`, strings.Repeat(" ", 64<<20))
	case "trickle":
		trickle(w, r)
	default:
		m.next.ServeHTTP(w, r)
	}
}

// control changes what the provider does, or says how often it was asked for keys.
func (m *misbehaving) control(w http.ResponseWriter, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch what {
	case "asked":
		fmt.Fprint(w, m.asked)
	case "rotate", "retire":
		if err := m.keys.rotate(what == "retire"); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	default:
		m.how = what
	}
}

// trickle sends a byte each 100 ms, until the client leaves.
func trickle(w http.ResponseWriter, r *http.Request) {
	each := time.NewTicker(100 * time.Millisecond)
	defer each.Stop()
	for {
		fmt.Fprint(w, " ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-each.C:
		}
	}
}

// runAsChild serves if this process is the child.
func runAsChild() {
	address := os.Getenv(addressVariable)
	if address == "" {
		return
	}
	go func() { // the parent holds the other end, however it ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Fprintln(os.Stderr, serve(address))
	os.Exit(1)
}
