package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// distantListener accepts connections that come from another machine, as far as the gateway can
// see.
type distantListener struct{ net.Listener }

func (l distantListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return distantConn{c}, err
}

type distantConn struct{ net.Conn }

func (distantConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}
}

// clientCertificate returns a certificate of somebody, and the authority that has issued it.
func clientCertificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{id},
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestCredentialsOverGRPC checks that certificates, tokens and sessions are taken from other
// machines over TLS, on the listener that serves gRPC, and that without TLS none is.
func TestCredentialsOverGRPC(t *testing.T) {
	secure, roots := certificate(t)
	mine, authority := clientCertificate(t, "spiffe://example.com/robot")
	secure.ClientCAs, secure.ClientAuth = authority, tls.VerifyClientCertIfGiven
	for name, server := range map[string]*tls.Config{"TLS": secure, "plain text": nil} {
		t.Run(name, func(t *testing.T) {
			r := newDoorRig(t, true, func(c *Config) {
				c.Access.Policy, c.Access.Credentials.Certificates = knownPolicy(t), credential.SubjectURI
			})
			cookie := sessionCookie(t, r.send("POST", "/v1/session", "", bearer(r.ann)))
			at := serveDistantCalls(t, r.gateway, server)
			for kind, c := range map[string]struct {
				certificates []tls.Certificate
				pairs        []string
				want         codes.Code // over TLS
			}{
				"nothing":           {nil, nil, codes.Unauthenticated},
				"a certificate":     {[]tls.Certificate{mine}, nil, codes.OK},
				"a token":           {nil, []string{"authorization", "Bearer " + r.ann}, codes.OK},
				"a JWT":             {nil, []string{"authorization", "Bearer " + r.jwt("eve", nil)}, codes.OK},
				"a session":         {nil, []string{"cookie", cookie.Name + "=" + cookie.Value}, codes.OK},
				"an unknown cookie": {nil, []string{"cookie", cookie.Name + "=x"}, codes.Unauthenticated},
			} {
				want := c.want
				if server == nil && c.pairs != nil {
					want = codes.PermissionDenied
				}
				if server == nil && c.certificates != nil {
					continue
				}
				client := dialDistant(t, at, server, &tls.Config{RootCAs: roots, Certificates: c.certificates})
				ctx := metadata.AppendToOutgoingContext(t.Context(), c.pairs...)
				_, err := client.ListResources(ctx, &api.ListResourcesRequest{Watch: "orders"})
				if status.Code(err) != want {
					t.Errorf("%s: %v, want %s", kind, err, want)
				}
				if want == codes.PermissionDenied && !strings.Contains(err.Error(), "grpc.tls") {
					t.Errorf("%s: the advice is %v", kind, err)
				}
			}
			for mechanism, want := range map[string]float64{"certificate": 1, "token": 3, "jwt": 1} {
				if server == nil {
					want = map[string]float64{"token": 1}[mechanism]
				}
				if got := r.count("watchtide_auth_total", "mechanism", mechanism); got != want {
					t.Errorf("%s: %v, want %v", mechanism, got, want)
				}
			}
		})
	}
}

// knownPolicy lets everybody with a credential read the orders.
func knownPolicy(t *testing.T) *access.Policy {
	t.Helper()
	p, err := access.CompilePolicy(access.PolicyConfig{
		Roles:   []access.Role{{Name: "known", When: `principal.mechanism != "anonymous"`}, {Name: "staff", When: `"staff" in principal.groups`}},
		Watches: []access.WatchRules{{Name: "orders", Rules: []access.Rule{{Role: "known", Read: "true"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serveDistantCalls serves gRPC to another machine, and returns the address.
func serveDistantCalls(t *testing.T, g *Gateway, server *tls.Config) string {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	calls := listen()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- g.Serve(ctx, Listeners{HTTP: listen(), GRPC: distantListener{calls}, GRPCTLS: server})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return calls.Addr().String()
}

func dialDistant(t *testing.T, at string, server, client *tls.Config) api.WatchServiceClient {
	t.Helper()
	creds := insecure.NewCredentials()
	if server != nil {
		creds = credentials.NewTLS(client)
	}
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewWatchServiceClient(conn)
}
