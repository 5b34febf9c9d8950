//go:build servers

package deploy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// proxy is a program, and a configuration of it: one of this directory, or a short one
// that leaves everything to the program's defaults.
type proxy struct {
	program string
	file    string   // "": plain is the configuration
	plain   string   // with the addresses of the files
	listen  string   // the address where it listens, in the configuration
	changes []string // pairs of text in the configuration, and what replaces it
}

var (
	nginx   = proxy{program: "nginx", file: "nginx.conf", listen: "listen 443"}
	haproxy = proxy{program: "haproxy", file: "haproxy.cfg", listen: "bind :443"}
	caddy   = proxy{program: "caddy", file: "Caddyfile", listen: "events.example.com {"}
)

// proxies are the programs that Debian has.
var proxies = []proxy{nginx, haproxy, caddy}

// plainProxies are the same programs, with no more than the addresses, and the time-outs
// that HAProxy wants. Without its Host, nginx would send a name that the gateway refuses.
var plainProxies = []proxy{
	{program: "nginx", listen: "listen 80", plain: `
upstream watchtide { server 10.0.0.1:8080; server 10.0.0.2:8080; }
server { listen 80; location / { proxy_pass http://watchtide; proxy_set_header Host $host; } }
`},
	{program: "haproxy", listen: "bind :80", plain: `
defaults
    mode http
    timeout connect 5s
    timeout client 50s
    timeout server 50s
frontend browsers
    bind :80
    default_backend watchtide
backend watchtide
    server a 10.0.0.1:8080 check
    server b 10.0.0.2:8080 check
`},
	{program: "caddy", listen: ":80 {", plain: `
:80 {
	reverse_proxy 10.0.0.1:8080 10.0.0.2:8080
}
`},
}

// start runs the proxy in front of at least two replicas, and returns its URL.
func (p proxy) start(t *testing.T, replicas ...string) (url string) {
	t.Helper()
	program, address, dir := realserver.Installed(t, p.program), realserver.FreeAddress(t), t.TempDir()
	c := trust(t)
	write(t, dir, "events.example.com.pem", string(c.pem))
	file := write(t, dir, "site", p.configuration(t, address, dir, replicas))
	command := realserver.Command{Path: program, Dir: dir, Address: address}
	switch p.program {
	case "nginx":
		command.Args = []string{"-e", "stderr", "-c", write(t, dir, "nginx.conf", strings.ReplaceAll(nginxAround, "DIR", dir))}
	case "haproxy":
		command.Args = []string{"-db", "-f", file}
	case "caddy":
		command.Args = []string{"run", "--adapter", "caddyfile", "--config", file}
		command.Env = []string{"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}
	}
	command.Start(t)
	_, port, _ := net.SplitHostPort(address)
	if p.file == "" {
		return "http://localhost:" + port
	}
	return "https://localhost:" + port
}

// nginxAround is what includes a file of conf.d/, with a compression that must not reach
// streams.
const nginxAround = `
daemon off; master_process off; # one process, which ends with the test
pid DIR/nginx.pid;
error_log stderr warn;
worker_rlimit_nofile 65536;
events { worker_connections 16384; }
http {
  access_log off;
  gzip on; gzip_proxied any; gzip_types *;
  client_body_temp_path DIR/temp; proxy_temp_path DIR/temp; fastcgi_temp_path DIR/temp;
  uwsgi_temp_path DIR/temp; scgi_temp_path DIR/temp;
  include DIR/site;
}`

// configuration is that of the proxy with other addresses and files.
func (p proxy) configuration(t *testing.T, address, dir string, replicas []string) string {
	t.Helper()
	text := p.plain
	if p.file != "" {
		raw, err := os.ReadFile(p.file)
		if err != nil {
			t.Fatal(err)
		}
		text = string(raw)
	}
	_, port, _ := net.SplitHostPort(address)
	here := strings.Replace(p.listen, ":443", address, 1)
	here = strings.Replace(here, "listen 443", "listen "+address, 1)
	here = strings.Replace(here, "listen 80", "listen "+address, 1)
	pem := filepath.Join(dir, "events.example.com.pem")
	global := ""
	if p.program == "caddy" {
		global = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
		here = "http://localhost:" + port + " {\n\tbind 127.0.0.1"
		if p.file != "" {
			here = "https://localhost:" + port + " {\n\tbind 127.0.0.1\n\ttls " + pem + " " + pem
		}
	}
	if here == p.listen { // a plain HAProxy
		here = "bind " + address
	}
	changes := append([]string{p.listen, here, "10.0.0.1:8080", replicas[0], "10.0.0.2:8080", replicas[1]}, p.changes...)
	for pair := range slices.Chunk(changes, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("the configuration of %s lacks %q", p.program, pair[0])
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	for _, more := range replicas[2:] { // a line like that of the second
		for line := range strings.Lines(text) {
			if strings.Contains(line, replicas[1]) {
				again := strings.Replace(line, replicas[1], more, 1)
				text = strings.Replace(text, line, line+strings.Replace(again, "server b ", "server c ", 1), 1)
				break
			}
		}
	}
	for _, name := range []string{"/etc/nginx/events.example.com.crt", "/etc/nginx/events.example.com.key", "/etc/haproxy/events.example.com.pem"} {
		text = strings.ReplaceAll(text, name, pem)
	}
	return global + strings.ReplaceAll(text, "server_name events.example.com", "server_name localhost")
}

func write(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// authority is the certificate of localhost, and its key, in one file.
type authority struct {
	pem []byte
	err error
}

// newAuthority makes the certificate, and lets all TLS clients of this process accept it.
var newAuthority = sync.OnceValue(func() (a authority) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{err: err}
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return authority{err: err}
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return authority{err: err}
	}
	a.pem = append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	file, err := os.CreateTemp("", "watchtide-authority-*.pem")
	if err != nil {
		return authority{err: err}
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.Write(a.pem); err != nil {
		return authority{err: err}
	}
	// The system's authorities are read once, at the first handshake.
	os.Setenv("SSL_CERT_FILE", file.Name())
	_, a.err = x509.SystemCertPool()
	return a
})

func trust(t *testing.T) authority {
	t.Helper()
	a := newAuthority()
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a
}
