package consul

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	right := Config{Address: "127.0.0.1:8502", Resources: Resources{Type: artistType}}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string // empty: nothing is wrong
	}{
		{"right", func(*Config) {}, ""},
		{"all that there is", func(c *Config) {
			c.Partition, c.Namespace, c.NamePrefix = Wildcard, "team-a", "web-"
			c.ProbeInterval, c.ListInterval, c.MaxMessageBytes = MinProbe, MinRelist, 1
		}, ""},
		{"no address", func(c *Config) { c.Address = "" }, `consul: the source has no address, which the collection resource needs; want host:port`},
		{"no port", func(c *Config) { c.Address = "consul" }, `address "consul": want host:port`},
		{"a URL", func(c *Config) { c.Address = "http://consul:8500" }, "want host:port"},
		{"no type", func(c *Config) { c.Type = "" }, `consul: resource_type is missing; want group.version.Kind`},
		{"half a type", func(c *Config) { c.Type = "v2.Artist" }, `resource type "v2.Artist"`},
		{"a partition in capitals", func(c *Config) { c.Partition = "Default" }, `partition "Default": want a name in lower case`},
		{"a namespace with a slash", func(c *Config) { c.Namespace = "a/b" }, `namespace "a/b"`},
		{"a prefix with a star", func(c *Config) { c.NamePrefix = "a*" }, `name prefix "a*"`},
		{"too often", func(c *Config) { c.ProbeInterval = time.Millisecond }, `probe "1ms": want 1s or more`},
		{"lists without end", func(c *Config) { c.ListInterval = -time.Second }, `relist "-1s": want 1s or more`},
		{"a negative size", func(c *Config) { c.MaxMessageBytes = -1 }, "want 0 or more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := right
			c.change(&config)
			_, err := New(config)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:8502": true, "[::1]:8502": true, "consul:8502": true, "dns:///consul:8503": true, "dns:consul:8503": true,
		"dns://10.0.0.2/consul:8503": true, "unix:///run/consul.sock": true, "passthrough:///a:1": true,
		"": false, "consul": false, "consul:": false, "consul:0": false, ":8502": false, "consul:70000": false,
		"http://consul:8500": false, "dns:///consul": false, "unix:": false, "a b:1": false,
	} {
		if got := ValidAddress(address); got != want {
			t.Errorf("ValidAddress(%q) is %t", address, got)
		}
	}
}

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	c := Config{TokenFile: file}
	for content, want := range map[string]string{
		"abc-def\n": "abc-def", " abc ": "abc", "": "", "\n": "", "two words": "", "abc\ndef": "", "abc\x00": "", "ключ": "",
		strings.Repeat("x", maxTokenBytes+1): "",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := c.token()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("of %.20q the token is %q, %v: want %q", content, got, err, want)
		}
		if err != nil && (!strings.Contains(err.Error(), file) || len(content) > 2 && strings.Contains(err.Error(), content)) {
			t.Errorf("error %q: want the file in it, and not its content", err)
		}
	}
	if got, err := new(Config).token(); got != "" || err != nil {
		t.Errorf("without a file the token is %q, %v", got, err)
	}
	if _, err := (&Config{TokenFile: t.TempDir()}).token(); err == nil {
		t.Error("a directory was read")
	}
}
