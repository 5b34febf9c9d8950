package config

import (
	"errors"
	"strings"
	"testing"
)

// TestExposureIsRefused unless it is explicitly permitted: the error has the
// line of the listener, the exposed access, and both solutions.
func TestExposureIsRefused(t *testing.T) {
	for text, want := range map[string][]string{
		"http:\n  listen: 0.0.0.0:8080\n":                                            {`f:2:11: http.listen: "0.0.0.0:8080": other machines`},
		`http: { listen: ":8080" }`:                                                  {`f:1:17: http.listen: ":8080": `},
		`http: { listen: "[::]:8080" }`:                                              {`f:1:17: http.listen: `},
		`http: { listen: "${WIDE}" }`:                                                {`f:1:17: http.listen: "${WIDE}": `},
		`grpc: { listen: "10.0.0.1:1" }`:                                             {`f:1:17: grpc.listen: "10.0.0.1:1": `, "read every watch, and write"},
		`operations: { listen: "example.com:1" }`:                                    {`f:1:23: operations.listen: "example.com:1": `, "metrics", "profiles"},
		"http: { listen: \":1\" }\nstream: { retry: 0s }":                            {`f:1:17: http.listen`, `f:2:18: stream.retry`}, // everything at once
		"http: { listen: &l \":1\", hosts: [a] }\ngrpc: { listen: \"127.0.0.1:2\" }": {`http.listen: ":1"`},
	} {
		env := Environment{Getenv: func(string) (string, bool) { return "0.0.0.0:80", true }}
		_, err := Parse("f", []byte(text), env)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		for _, part := range append(want, "listen on loopback", "auth: none") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s:\n%v\nwant %q", text, err, part)
			}
		}
		if _, err := Parse("f", []byte(text+"\nauth: none"), env); err != nil && strings.Contains(err.Error(), "other machines") {
			t.Errorf("%s, with auth: none: %v", text, err)
		}
	}
	for _, text := range []string{
		"", `http: { listen: "127.0.0.1:0" }`, `http: { listen: "[::1]:0" }`, `grpc: { listen: "localhost:0" }`, "operations: { listen: off }",
	} {
		if _, err := Parse("f", []byte(text), Environment{}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestFlagsWinOverTheFile: flags replace the file's values, and are checked
// in their place.
func TestFlagsWinOverTheFile(t *testing.T) {
	const wide, narrow = "http: { listen: \"0.0.0.0:1\" }", "http: { listen: \"127.0.0.1:1\" }"
	for _, c := range []struct {
		text  string
		flags Flags
		want  string // of the error; empty: none
	}{
		{wide, Flags{HTTP: "127.0.0.1:2"}, ""},
		{wide, Flags{Auth: NoAuth}, ""},
		{narrow, Flags{HTTP: ":2"}, "--http :2: other machines can reach it, and"},
		{"", Flags{GRPC: "0.0.0.0:2"}, "--grpc 0.0.0.0:2: other machines"},
		{"", Flags{Operations: "0.0.0.0:2"}, "--operations 0.0.0.0:2: other machines"},
		{"", Flags{HTTP: "0.0.0.0:2", Operations: OperationsOff, Auth: NoAuth}, ""},
	} {
		got, err := Parse("f", []byte(c.text), Environment{Flags: c.flags})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s, %+v: %v", c.text, c.flags, err)
			} else if c.flags.HTTP != "" && got.HTTP.Listen != c.flags.HTTP || c.flags.Operations != "" && got.Operations.Listen != c.flags.Operations {
				t.Errorf("%s, %+v: %+v", c.text, c.flags, got)
			}
			continue
		}
		var all Errors
		if !errors.As(err, &all) || len(all) != 1 || !strings.HasPrefix(err.Error(), c.want) || !strings.Contains(err.Error(), "--auth none") {
			t.Errorf("%s, %+v: %v, want %q", c.text, c.flags, err, c.want)
		}
	}
}

// TestGRPCIsOffUnlessItIsConfigured: by the section, be it empty, or by the flag.
func TestGRPCIsOffUnlessItIsConfigured(t *testing.T) {
	for _, c := range []struct {
		text, flag, want string
	}{
		{"", "", ""},
		{"http: {}", "", ""},
		{"grpc: {}", "", DefaultGRPC},
		{`grpc: { listen: "127.0.0.1:1" }`, "", "127.0.0.1:1"},
		{"", "127.0.0.1:2", "127.0.0.1:2"},
		{"grpc: {}", "127.0.0.1:2", "127.0.0.1:2"},
	} {
		got, err := Parse("f", []byte(c.text), Environment{Flags: Flags{GRPC: c.flag}})
		if err != nil || got.GRPC.Listen != c.want {
			t.Errorf("%q with --grpc %q: listens on %+v, want %q; %v", c.text, c.flag, got, c.want, err)
		}
	}
	if _, err := Parse("f", []byte("http: { listen: "+DefaultGRPC+" }\ngrpc: {}"), Environment{}); err == nil || !strings.Contains(err.Error(), "http and grpc listen on the same address") {
		t.Errorf("http on the default port of gRPC: %v", err)
	}
}
