package config

import (
	"github.com/watchtide/watchtide/internal/source/nats"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

const everyKeyOfNATS = `
sources:
  bus:
    type: nats
    url: "nats://a:4222, tls://b:4222"
    tls: { server_name: bus }
    credentials_file: /run/token
    domain: hub
    inbox_prefix: _INBOX.gateway
    stall_after: 3s
    poll_interval: 1m
  other: { type: nats, url: "nats://a", username: gateway, password_file: token }
  third: { type: nats, url: "nats://a", token_file: token }
  fourth: { type: nats, url: "nats://a", nkey_file: token }
watches: { flags: { source: bus, bucket: FLAGS, keys: "eu.>", values: text, writable: true }, rest: { source: other, bucket: rest } }
`

func TestNATSSource(t *testing.T) {
	c := parse(t, everyKeyOfNATS)
	got := c.Sources[0].NATS
	if got.TLS == nil || got.TLS.ServerName != "bus" {
		t.Errorf("TLS is %+v, want the server name bus", got.TLS)
	}
	got.TLS = nil
	for i, want := range []nats.Config{
		{
			URL: "nats://a:4222, tls://b:4222", CredentialsFile: "/run/token", Domain: "hub", InboxPrefix: "_INBOX.gateway",
			StallAfter: 3 * time.Second, PollInterval: time.Minute,
		},
		{URL: "nats://a", Username: "gateway", PasswordFile: "etc/token"},
		{URL: "nats://a", TokenFile: "etc/token"},
		{URL: "nats://a", NKeyFile: "etc/token"},
	} {
		if i > 0 {
			got = c.Sources[i].NATS
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, want %+v", got, want)
		}
	}
	if w := c.Watches[0]; w.Bucket != "FLAGS" || w.Keys != "eu.>" || w.Values != stream.TextValues || !w.Writable {
		t.Errorf("bucket %q, keys %q", w.Bucket, w.Keys)
	}
}

func TestNATSSourceErrors(t *testing.T) {
	for _, c := range []struct{ name, keys, watch, want string }{
		{"no url", `stall_after: 1s`, "bucket: b", "sources.bus: url is missing, which a source of type nats must have"},
		{"values of another kind", `url: "nats://a"`, "bucket: b, values: yaml", `watches.flags.values: "yaml": want text, json or base64`},
		{"another scheme", `url: "http://a:4222"`, "bucket: b", `sources.bus.url: "http://a:4222": want nats://host:port`},
		{"a password in the url", `url: "nats://u:p@a"`, "bucket: b", "without user, password or token"},
		{"a token in the file", `url: "nats://a", token: x`, "bucket: b", `unknown key "token" in sources.bus`},
		{"no such file", `url: "nats://a", credentials_file: nowhere`, "bucket: b", `sources.bus.credentials_file: "nowhere" cannot be read`},
		{"two ways", `url: "nats://a", credentials_file: token, token_file: token`, "bucket: b", "sources.bus: want one of credentials_file, nkey_file, token_file, and username with password_file"},
		{"no user", `url: "nats://a", password_file: token`, "bucket: b", "sources.bus: want both username and password_file, or neither"},
		{"a domain with a dot", `url: "nats://a", domain: "a.b"`, "bucket: b", `sources.bus.domain: "a.b": want letters, digits`},
		{"a wildcard", `url: "nats://a", inbox_prefix: "a.>"`, "bucket: b", `sources.bus.inbox_prefix: "a.>": want tokens between dots, without wildcards`},
		{"too short", `url: "nats://a", stall_after: 10ms`, "bucket: b", "want a duration of at least 500ms"},
		{"too often", `url: "nats://a", poll_interval: 10ms`, "bucket: b", "want a duration of at least 100ms"},
		{"no bucket", `url: "nats://a"`, `keys: "a.>"`, "watches.flags: bucket is missing; want letters, digits"},
		{"a bad bucket", `url: "nats://a"`, `bucket: "a.b"`, `watches.flags.bucket: "a.b": want letters, digits`},
		{"a bad pattern", `url: "nats://a"`, `bucket: b, keys: "a*"`, `watches.flags.keys: "a*": want tokens between dots`},
		{"a key of another type", `url: "nats://a"`, `bucket: b, prefix: x`, "prefix is for watches of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "sources: { bus: { type: nats, " + c.keys + " } }\nwatches: { flags: { source: bus, " + c.watch + " } }\n"
			_, err := Parse("etc/gateway.yaml", []byte(text), fakeEnvironment())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
