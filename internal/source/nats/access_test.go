//go:build servers

package nats

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// file writes a file for one test.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configured is a server with a configuration, and a bucket "flags" on it that
// "admin" may write.
func configured(t *testing.T, config string, options ...nats.Option) (*handle, string) {
	t.Helper()
	s := ownServer(t, "-config", file(t, "nats.conf", config))
	options = append([]nats.Option{nats.UserInfo("admin", "admin")}, options...)
	b := newClient(t, s.Addr(), options...).bucket(jetstream.KeyValueConfig{Bucket: "flags"})
	b.must(b.put("eu.a", "1"))
	b.must(b.put("us.a", "1"))
	return b, s.Addr()
}

// documented returns the permissions in the documentation of this source.
func documented(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/sources/nats.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```\n(permissions: .*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/sources/nats.md shows no permissions")
	}
	return string(block[1])
}

func users(permissions string) string {
	return fmt.Sprintf("authorization { users: [ { user: admin, password: admin }, { user: gateway, password: secret, %s } ] }", permissions)
}

func asGateway(t *testing.T) func(*Config) {
	password := file(t, "password", "secret\n")
	return func(c *Config) { c.Username, c.PasswordFile = "gateway", password }
}

func TestDocumentedPermissionsSuffice(t *testing.T) {
	b, address := configured(t, users(documented(t)))
	s := source(t, address, "flags", asGateway(t))
	r := start(t, s, nil).has("eu.a", "1", "us.a", "1")
	b.must(b.put("eu.b", "2"))
	b.purge("us.a")
	r.has("eu.a", "1", "eu.b", "2").stop()
	start(t, s, r).has("eu.a", "1", "eu.b", "2").resets(0)
	b.fill(5000, func(int) string { return strings.Repeat("x", 1000) }) // with flow control
	start(t, s, nil).until(func() string { return "" })
}

// Each permission is needed, except for flow control, without which the server
// only pauses for a while; a missing one is reported immediately.
func TestMissingPermission(t *testing.T) {
	all := documented(t)
	for _, missing := range []string{
		"$JS.API.STREAM.INFO.KV_flags", "$JS.API.STREAM.MSG.GET.KV_flags", "$JS.API.CONSUMER.CREATE.KV_flags.>", "_INBOX.>",
	} {
		t.Run(missing, func(t *testing.T) {
			quoted := `"` + missing + `"`
			if !strings.Contains(all, quoted) {
				t.Fatalf("%s is not documented", quoted)
			}
			_, address := configured(t, users(strings.Replace(all, quoted, `"none"`, 1)))
			began := time.Now()
			err := fails(t, source(t, address, "flags", asGateway(t)))
			subject := strings.TrimSuffix(missing, ">")
			if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), subject) || !strings.Contains(err.Error(), "docs/sources/nats.md") {
				t.Errorf("error %v, want one that names %s", err, subject)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("reported after %v", took)
			}
		})
	}
}

// A user may be allowed to follow only some keys.
func TestPermissionForSomeKeys(t *testing.T) {
	all := documented(t)
	b, address := configured(t, users(strings.Replace(all, "KV_flags.>\"\n    \"$JS.FC", "KV_flags.*.$KV.flags.eu.>\"\n    \"$JS.FC", 1)))
	s := source(t, address, "flags", asGateway(t), func(c *Config) { c.Keys = "eu.>" })
	r := start(t, s, nil).has("eu.a", "1")
	b.must(b.put("eu.b", "2"))
	r.has("eu.a", "1", "eu.b", "2")
	if err := fails(t, source(t, address, "flags", asGateway(t))); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("all keys can be read: %v", err)
	}
}

func TestPasswords(t *testing.T) {
	_, address := configured(t, users(documented(t)))
	password := file(t, "password", "wrong")
	s := source(t, address, "flags", func(c *Config) { c.Username, c.PasswordFile = "gateway", password })
	err := fails(t, s)
	if !errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "want credentials that the server accepts") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("error %v", err)
	}
	// The file is read for each connection.
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, s, nil).has("eu.a", "1", "us.a", "1")
	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, source(t, address, "flags", func(c *Config) { c.Username, c.PasswordFile = "gateway", password })); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "want a file that the gateway can read") {
		t.Errorf("error %v", err)
	}
}

func TestToken(t *testing.T) {
	s := ownServer(t, "-config", file(t, "nats.conf", "authorization { token: s3cret }"))
	b := newClient(t, s.Addr(), nats.Token("s3cret")).bucket(jetstream.KeyValueConfig{Bucket: "flags"})
	b.must(b.put("a", "1"))
	token := file(t, "token", "s3cret\n")
	start(t, source(t, s.Addr(), "flags", func(c *Config) { c.TokenFile = token }), nil).has("a", "1")
	if err := fails(t, source(t, s.Addr(), "flags")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("error %v", err)
	}
}

func TestNKey(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pair.PublicKey()
	seed, _ := pair.Seed()
	_, address := configured(t, fmt.Sprintf("authorization { users: [ { user: admin, password: admin }, { nkey: %s } ] }", public))
	key := file(t, "nkey", string(seed)+"\n")
	start(t, source(t, address, "flags", func(c *Config) { c.NKeyFile = key }), nil).has("eu.a", "1", "us.a", "1")
}

// An account without JetStream has no buckets.
func TestNoJetStream(t *testing.T) {
	s := ownServer(t, "-config", file(t, "nats.conf", `
		accounts { A { users: [ { user: gateway, password: secret } ] } }`))
	err := fails(t, source(t, s.Addr(), "flags", asGateway(t)))
	if err == nil || !strings.Contains(err.Error(), "want a server with JetStream for this account") {
		t.Errorf("error %v", err)
	}
}

// An inbox prefix of its own keeps the server's answers from other users.
func TestInboxPrefix(t *testing.T) {
	_, address := configured(t, users(strings.Replace(documented(t), "_INBOX.>", "_GATEWAY.in.>", 1)))
	start(t, source(t, address, "flags", asGateway(t), func(c *Config) { c.InboxPrefix = "_GATEWAY.in" }), nil).
		has("eu.a", "1", "us.a", "1")
}

// The bucket is on a hub, and the gateway at a leaf with its own domain.
func TestDomain(t *testing.T) {
	leaves := realserver.FreeAddress(t)
	b, hub := configured(t, fmt.Sprintf("jetstream { domain: hub }\nleafnodes { listen: %q }\n%s", leaves, users(documented(t))))
	leaf := ownServer(t, "-config", file(t, "leaf.conf", fmt.Sprintf(
		"jetstream { domain: leaf }\nleafnodes { remotes: [ { url: \"nats://admin:admin@%s\" } ] }\n%s",
		leaves, users(strings.ReplaceAll(documented(t), "$JS.API", "$JS.hub.API")))))
	js, err := jetstream.NewWithDomain(newClient(t, leaf.Addr(), nats.UserInfo("admin", "admin")).conn, "hub")
	b.must(err)
	b.must(b.insist(func(ctx context.Context) error { // until the leaf has found the hub
		_, err := js.AccountInfo(ctx)
		return err
	}))
	for _, address := range []string{hub, leaf.Addr()} {
		s := source(t, address, "flags", asGateway(t), func(c *Config) { c.Domain = "hub" })
		start(t, s, nil).has("eu.a", "1", "us.a", "1")
	}
}

func TestTLS(t *testing.T) {
	certificate, key, pool := selfSigned(t)
	s := ownServer(t, "-config", file(t, "nats.conf", fmt.Sprintf("tls { cert_file: %q, key_file: %q }", certificate, key)))
	b := newClient(t, s.Addr(), nats.Secure(&tls.Config{RootCAs: pool})).bucket(jetstream.KeyValueConfig{Bucket: "flags"})
	b.must(b.put("a", "1"))
	for name, test := range map[string]struct {
		config *tls.Config
		want   string
	}{
		"with the authority":    {&tls.Config{RootCAs: pool}, ""},
		"without the authority": {nil, "want a certificate authority and a server name that fit the server"},
		"another name":          {&tls.Config{RootCAs: pool, ServerName: "other"}, "want a certificate authority and a server name"},
	} {
		t.Run(name, func(t *testing.T) {
			src := source(t, s.Addr(), "flags", func(c *Config) { c.TLS = test.config })
			if test.want == "" {
				start(t, src, nil).has("a", "1")
			} else if err := fails(t, src); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
		})
	}
	plain := source(t, server(t).Addr(), "flags", func(c *Config) { c.TLS = &tls.Config{RootCAs: pool} })
	if err := fails(t, plain); err == nil || !strings.Contains(err.Error(), "want no tls if the server speaks none") {
		t.Errorf("TLS with a server that speaks none: %v", err)
	}
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t *testing.T) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nats"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(text))
	return file(t, "cert.pem", text), file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))), pool
}
