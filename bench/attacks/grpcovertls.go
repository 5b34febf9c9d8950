package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/bench/internal/process"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

var grpcOverTLS = attack{
	name:  "grpc-over-tls",
	title: "users call over gRPC with TLS, from loopback and from another address, with a certificate, a token, a session, none, and wrong ones",
	run:   runGRPCOverTLS,
}

const tlsConfiguration = `
http: { listen: "ADDRESS:0", tls: { cert_file: DIR/server.pem, key_file: DIR/server.key, client_ca_file: DIR/ca.pem } }
grpc: { listen: "ADDRESS:0", tls: { cert_file: DIR/server.pem, key_file: DIR/server.key, client_ca_file: DIR/ca.pem } }
operations: { listen: "127.0.0.1:0" }
auth: { tokens_file: DIR/tokens, certificates: { subject: uri } }
roles: { known: { when: 'principal.mechanism != "anonymous"' } }
sources: { a: { type: store } }
watches: { notes: { source: a, allow: [ { role: known, read: "true", write: "true" } ] } }
`

// elsewhere is the address of a gateway in a network namespace of its own, which sees its
// clients at this address too. It is for private use.
const elsewhere = "10.9.9.9"

// errNoNamespace says that no network namespace can be made here.
var errNoNamespace = errors.New("needs root and Linux")

func runGRPCOverTLS(ctx context.Context, r *rig) error {
	pki, err := newAuthority()
	if err != nil {
		return err
	}
	if err := callOverTLS(ctx, r, pki, "127.0.0.1", nil); err != nil {
		return err
	}
	// The thread is in the namespace until it ends with its goroutine.
	result := make(chan error, 1)
	go func() {
		dial, err := enterNamespace(ctx, elsewhere)
		if err == nil {
			err = callOverTLS(ctx, r, pki, elsewhere, dial)
		}
		result <- err
	}()
	err = <-result
	if errors.Is(err, errNoNamespace) {
		r.report("from another address than one of loopback", "the same", true, "not tried: %v", err)
		return nil
	}
	return err
}

// callOverTLS calls a gateway at an address, with each credential.
func callOverTLS(ctx context.Context, r *rig, pki *authority, address string, dial process.Dial) error {
	dir, err := r.write(strings.ReplaceAll(tlsConfiguration, "ADDRESS", address), pki.files)
	if err != nil {
		return err
	}
	t, err := r.startIn(ctx, dir, dial)
	if err != nil {
		return err
	}
	defer t.Stop()
	login := &client{base: "https://" + t.HTTP, token: token("ann"), http: &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: pki.pool}}}}
	if err := login.put(ctx, "notes", "k", "1"); err != nil {
		return err
	}
	session, err := login.session(ctx)
	if err != nil {
		return err
	}
	for _, call := range []struct {
		with         string
		certificates []tls.Certificate
		pairs        []string
		want         codes.Code
	}{
		{"a certificate", []tls.Certificate{pki.client}, nil, codes.OK},
		{"a token", nil, []string{"authorization", "Bearer " + token("ann")}, codes.OK},
		{"a session", nil, []string{"cookie", session.header.Get("Cookie")}, codes.OK},
		{"nothing", nil, nil, codes.Unauthenticated},
		{"a wrong token", nil, []string{"authorization", "Bearer " + token("nobody")}, codes.Unauthenticated},
		{"a wrong session", nil, []string{"cookie", session.header.Get("Cookie") + "x"}, codes.Unauthenticated},
		{"a session, from a page of another site", nil, []string{"cookie", session.header.Get("Cookie"), "sec-fetch-site", "cross-site"}, codes.Unauthenticated},
	} {
		got, err := callWith(ctx, t.GRPC, dial, &tls.Config{RootCAs: pki.pool, Certificates: call.certificates}, call.pairs)
		if err != nil {
			return err
		}
		r.equal("gRPC at "+address+" with "+call.with, call.want.String(), got.String())
	}
	return nil
}

// callWith lists a watch over gRPC, and returns how that ends.
func callWith(ctx context.Context, address string, dial process.Dial, secure *tls.Config, pairs []string) (codes.Code, error) {
	options := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(secure)), grpc.WithNoProxy()}
	if dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return dial(ctx, "tcp", to) }))
	}
	connection, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return codes.OK, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, pairs...), process.Patience/3)
	defer cancel()
	_, err = api.NewWatchServiceClient(connection).ListResources(ctx, &api.ListResourcesRequest{Watch: "notes"})
	return status.Code(err), nil
}

// authority has issued a certificate of a gateway and one of a client.
type authority struct {
	pool   *x509.CertPool
	client tls.Certificate
	files  map[string]string // what the configuration names

	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newAuthority() (*authority, error) {
	a := &authority{pool: x509.NewCertPool(), files: map[string]string{}}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	root, err := a.issue(template)
	if err != nil {
		return nil, err
	}
	a.key, _ = root.PrivateKey.(*ecdsa.PrivateKey)
	a.root = root.Leaf
	a.pool.AddCert(a.root)
	a.files["ca.pem"] = inPEM("CERTIFICATE", root.Certificate[0])
	server, err := a.issue(&x509.Certificate{
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(elsewhere)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	if err != nil {
		return nil, err
	}
	a.files["server.pem"], a.files["server.key"] = inPEM("CERTIFICATE", server.Certificate[0]), inPEM("PRIVATE KEY", der)
	a.client, err = a.issue(&x509.Certificate{
		URIs: []*url.URL{{Scheme: "spiffe", Host: "example.com", Path: "/robot"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return a, err
}

// issue signs a certificate; the first one signs itself.
func (a *authority) issue(template *x509.Certificate) (issued tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued, err
	}
	template.SerialNumber, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(time.Hour)
	template.NotBefore = time.Now().Add(-time.Hour)
	parent, signer := a.root, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return issued, fmt.Errorf("a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
