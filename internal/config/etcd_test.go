package config

import (
	"fmt"
	"github.com/watchtide/watchtide/internal/source/etcd"
	"reflect"
	"strings"
	"testing"
	"time"
)

const everyKeyOfEtcd = `
sources:
  keys:
    type: etcd
    endpoints: ["https://etcd-1:2379", "etcd-2:2379"]
    tls: { server_name: etcd }
    username: gateway
    password_file: token
    connect_timeout: 1s
    request_timeout: 2s
    stall_after: 3s
    history: false
watches: { settings: { source: keys, prefix: "/settings/" } }
`

func TestEtcdSource(t *testing.T) {
	c := parse(t, everyKeyOfEtcd)
	got := c.Sources[0].Etcd
	if got.TLS == nil || got.TLS.ServerName != "etcd" {
		t.Errorf("TLS is %+v, want the server name etcd", got.TLS)
	}
	got.TLS = nil
	want := etcd.Config{
		Endpoints: []string{"https://etcd-1:2379", "etcd-2:2379"}, Username: "gateway", PasswordFile: "etc/token",
		ConnectTimeout: time.Second, RequestTimeout: 2 * time.Second, StallAfter: 3 * time.Second,
		NoHistory: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if c.Watches[0].Prefix != "/settings/" {
		t.Errorf("prefix is %q", c.Watches[0].Prefix)
	}
}

func TestEtcdSourceErrors(t *testing.T) {
	for _, c := range []struct{ name, keys, want string }{
		{"no endpoints", `stall_after: 1s`, "sources.keys: endpoints is missing, which a source of type etcd must have"},
		{"no list", `endpoints: "a:1"`, "sources.keys.endpoints: want a list, not text"},
		{"another scheme", `endpoints: ["ftp://a:1"]`, `sources.keys.endpoints[0]: "ftp://a:1": want a member's address`},
		{"no port", `endpoints: ["a:1", "b"]`, `sources.keys.endpoints[1]: "b": want a member's address`},
		{"a password in the file", `endpoints: ["a:1"], password: x`, `unknown key "password" in sources.keys`},
		{"no such file", `endpoints: ["a:1"], password_file: nowhere`, `sources.keys.password_file: "nowhere" cannot be read`},
		{"two lines", `endpoints: ["a:1"], password_file: lines`, "sources.keys.password_file: the file must hold one line"},
		{"no password", `endpoints: ["a:1"], username: x`, "sources.keys: want both username and password_file, or neither"},
		{"no user", `endpoints: ["a:1"], password_file: token`, "sources.keys: want both username and password_file, or neither"},
		{"no answer", `endpoints: ["a:1"], history: 1h`, `sources.keys.history: "1h": want true or false`},
		{"too short", `endpoints: ["a:1"], stall_after: 10ms`, "want a duration of at least 500ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "sources: { keys: { type: etcd, " + c.keys + " } }\nwatches: { settings: { source: keys } }\n"
			_, err := Parse("etc/gateway.yaml", []byte(text), fakeEnvironment())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestSecretsDoNotShow prints a configuration in every way.
func TestSecretsDoNotShow(t *testing.T) {
	s := parse(t, everyKeyOfEtcd).Sources[0].Etcd
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb, s); strings.Contains(text, "s3cret") || strings.Contains(text, fmt.Sprintf("%x", "s3cret")) {
			t.Errorf("%s shows the password: %s", verb, text)
		}
	}
}
