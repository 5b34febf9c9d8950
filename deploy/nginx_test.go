//go:build servers

package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream/streamtest/realserver"
)

// startNginx runs the installed nginx with nginx.conf of this directory, in front
// of replicas at these addresses, and returns the address where it listens.
func startNginx(t *testing.T, replicas ...string) string {
	t.Helper()
	program, address := realserver.Installed(t, "nginx"), realserver.FreeAddress(t)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("site.conf", site(t, address, replicas))
	write("nginx.conf", strings.ReplaceAll(`
daemon off; master_process off; # one process, which ends with the test
pid DIR/nginx.pid;
error_log stderr warn;
events { worker_connections 2048; }
http {
  access_log off;
  client_body_temp_path DIR/temp; proxy_temp_path DIR/temp; fastcgi_temp_path DIR/temp;
  uwsgi_temp_path DIR/temp; scgi_temp_path DIR/temp;
  include DIR/site.conf;
}`, "DIR", dir))
	realserver.Command{
		Path: program, Args: []string{"-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")}, Address: address,
	}.Start(t)
	return address
}

// site is nginx.conf with other addresses: its line for one replica is repeated
// for each.
func site(t *testing.T, address string, replicas []string) string {
	t.Helper()
	raw, err := os.ReadFile("nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	one := regexp.MustCompile(`(?m)^    server 127\.0\.0\.1:8080.*;\n`)
	line := one.FindString(string(raw))
	listen := "listen 127.0.0.1:8000;"
	if line == "" || !strings.Contains(string(raw), listen) {
		t.Fatalf("nginx.conf has no replica at 127.0.0.1:8080, or no %q", listen)
	}
	var lines strings.Builder
	for _, r := range replicas {
		lines.WriteString(strings.Replace(line, "127.0.0.1:8080", r, 1))
	}
	text := strings.Replace(string(raw), line, lines.String(), 1)
	return strings.Replace(text, listen, fmt.Sprintf("listen %s;", address), 1)
}
