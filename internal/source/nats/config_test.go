package nats

import (
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

func TestBadConfig(t *testing.T) {
	tests := map[string]struct {
		config Config
		want   string
	}{
		"no url":             {Config{Bucket: "b"}, `url "": want nats://host:port`},
		"a password":         {Config{URL: "nats://me:secret@a:4222", Bucket: "b"}, `url "…@a:4222": want nats://host:port`},
		"no bucket":          {Config{URL: "nats://a"}, `bucket "": want letters`},
		"a bad bucket":       {Config{URL: "nats://a", Bucket: "a.b"}, `bucket "a.b"`},
		"bad keys":           {Config{URL: "nats://a", Bucket: "b", Keys: "a.>.b"}, `keys "a.>.b": want tokens`},
		"a bad domain":       {Config{URL: "nats://a", Bucket: "b", Domain: "*"}, `domain "*"`},
		"a bad inbox":        {Config{URL: "nats://a", Bucket: "b", InboxPrefix: "a..b"}, `inbox prefix "a..b"`},
		"stall":              {Config{URL: "nats://a", Bucket: "b", StallAfter: time.Millisecond}, `stall after "1ms": want 500ms or more`},
		"poll":               {Config{URL: "nats://a", Bucket: "b", PollInterval: -1}, `poll interval "-1ns": want 100ms or more`},
		"two ways":           {Config{URL: "nats://a", Bucket: "b", TokenFile: "t", NKeyFile: "n"}, "want one of credentials_file"},
		"user, no password":  {Config{URL: "nats://a", Bucket: "b", Username: "me"}, "want both username and password_file"},
		"password, no user":  {Config{URL: "nats://a", Bucket: "b", PasswordFile: "p"}, "want both username and password_file"},
		"another way beside": {Config{URL: "nats://a", Bucket: "b", Username: "me", PasswordFile: "p", TokenFile: "t"}, "want one of"},
	}
	for name, test := range tests {
		_, err := New(test.config)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want %s", name, err, test.want)
		}
	}
}

func TestValidURL(t *testing.T) {
	for url, want := range map[string]bool{
		"nats://a":                    true,
		"nats://a:4222":               true,
		"tls://nats.example.com:4222": true,
		"nats://a:1,nats://b:2":       true,
		"nats://a:1, nats://b:2":      true,
		"nats://[::1]:4222":           true,
		"nats://a:4222/":              true,
		"":                            false,
		"a:4222":                      false,
		"http://a:4222":               false,
		"ws://a:4222":                 false,
		"nats://":                     false,
		"nats://a:":                   false,
		"nats://a:0":                  false,
		"nats://a:65536":              false,
		"nats://a:1,":                 false,
		"nats://token@a":              false,
		"nats://a/x":                  false,
		"nats://a?x=1":                false,
		"nats://a b":                  false,
	} {
		if got := ValidURL(url); got != want {
			t.Errorf("ValidURL(%q) is %v, want %v", url, got, want)
		}
	}
}

func TestValidKeys(t *testing.T) {
	for pattern, want := range map[string]bool{
		"a": true, "a.b": true, ">": true, "a.>": true, "*": true, "a.*.b": true, "a.*": true, "ключ.>": true,
		"": false, "a.": false, ".a": false, "a..b": false, ">.a": false, "a>": false, "a*": false, "a b": false, "a.\t": false,
	} {
		if got := ValidKeys(pattern); got != want {
			t.Errorf("ValidKeys(%q) is %v, want %v", pattern, got, want)
		}
		if got, want := ValidPrefix(pattern), want && !strings.ContainsAny(pattern, "*>"); got != want {
			t.Errorf("ValidPrefix(%q) is %v, want %v", pattern, got, want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("nats://a:4222,tls://b", "b", "a.*.>")
	f.Add("nats://u:p@a", "a.b", "")
	f.Fuzz(func(t *testing.T, url, bucket, keys string) {
		s, err := New(Config{URL: url, Bucket: bucket, Keys: keys})
		if err != nil {
			return
		}
		if strings.ContainsRune(s.config.String(), '\n') || strings.ContainsRune(url, '@') {
			t.Errorf("taken: %+v", s.config)
		}
	})
}

// The name of the order changes whenever it is another order.
func TestEpoch(t *testing.T) {
	made := time.Unix(1, 2)
	seen := map[string]string{}
	for name, epoch := range map[string]string{
		"bucket":   epochOf(&Config{Bucket: "a"}, made, "", ""),
		"name":     epochOf(&Config{Bucket: "b"}, made, "", ""),
		"keys":     epochOf(&Config{Bucket: "a", Keys: ">"}, made, "", ""),
		"domain":   epochOf(&Config{Bucket: "a", Domain: "d"}, made, "", ""),
		"made":     epochOf(&Config{Bucket: "a"}, made.Add(1), "", ""),
		"restored": epochOf(&Config{Bucket: "a"}, made, "1", ""),
		"lot":      epochOf(&Config{Bucket: "a"}, made, "", "1"),
		"text":     epochOf(&Config{Bucket: "a", Values: stream.TextValues}, made, "", ""),
		"json":     epochOf(&Config{Bucket: "a", Values: stream.JSONValues}, made, "", ""),
		"base64":   epochOf(&Config{Bucket: "a", Values: stream.Base64Values}, made, "", ""),
	} {
		if other, twice := seen[epoch]; twice {
			t.Errorf("%s and %s have the epoch %s", name, other, epoch)
		}
		seen[epoch] = name
	}
	replica := Config{URL: "nats://elsewhere", Bucket: "a", TokenFile: "t"}
	if epochOf(&replica, made.UTC(), "", "") != epochOf(&Config{Bucket: "a"}, made, "", "") {
		t.Error("the epoch depends on who follows the bucket")
	}
}
