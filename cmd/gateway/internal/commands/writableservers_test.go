//go:build servers

package commands

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// TestWritableUpstreams writes to upstreams through a gateway with rules, and reads the result there at once.
func TestWritableUpstreams(t *testing.T) {
	for name, upstream := range map[string]func(t *testing.T) (source, watch string, put func(key string)){
		"etcd": func(t *testing.T) (string, string, func(string)) {
			address, put := withEtcd(t)
			return `{ type: etcd, endpoints: ["` + address + `"] }`, `prefix: "/notes/"`, func(key string) { put("/notes/" + key) }
		},
		"nats": func(t *testing.T) (string, string, func(string)) {
			address, fill := withNATS(t)
			fill("notes", "foreign")
			return `{ type: nats, url: "nats://` + address + `" }`, `bucket: notes`, func(string) {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			source, watch, put := upstream(t)
			put("foreign")
			p := serveProtected(t, `
auth: { tokens_file: %TOKENS% }
sources: { up: `+source+` }
roles:
  staff:  { when: '"staff" in principal.groups' }
  acme:   { when: '"acme" in principal.groups' }
watches:
  notes:
    source: up
    `+watch+`
    writable: true
    allow:
      - { role: staff, read: "true", write: "true", delete: "true" }
      - { role: acme, read: 'value.owner == principal.name', write: 'new.owner == principal.name', delete: "true" }
  read-only: { source: up, `+watch+`, allow: [{ role: staff, read: "true", write: "true" }] }
`)
			p.awaitPrimed()
			const at = "/v1/watches/notes/resources/"
			for i, c := range []struct {
				who, method, path, body string
				code                    int
				want                    string
			}{
				{"sam", "PUT", at + "a", `{"owner":"sam"}`, 201, `"value":{"owner":"sam"}`},
				{"sam", "GET", at + "a", "", 200, `"value":{"owner":"sam"}`},
				{"sam", "PUT", at + "a", `{"owner":"sam","n":1.50}`, 200, `1.50`},
				{"sam", "GET", at + "foreign", "", 200, "foreign"},
				{"agent", "PUT", at + "a", `{"owner":"agent"}`, 404, "no resource"},
				{"agent", "DELETE", at + "a", "", 200, `"deleted":false`},
				{"agent", "PUT", at + "b", `{"owner":"sam"}`, 403, "no rule"},
				{"agent", "PUT", at + "b", `{"owner":"agent"}`, 201, ""},
				{"agent", "GET", at + "b", "", 200, "agent"},
				{"agent", "PUT", at + "b?validate_only=true", `{"owner":"agent","n":2}`, 200, `"n":2`},
				{"agent", "GET", at + "b", "", 200, `{"owner":"agent"}`},
				{"agent", "DELETE", at + "b", "", 200, `"deleted":true`},
				{"agent", "GET", at + "b", "", 404, ""},
				{"", "PUT", at + "c", "1", 401, ""},
				{"outsider", "PUT", at + "c", "1", 404, ""},
				{"sam", "PUT", "/v1/watches/read-only/resources/a", "1", 405, ""},
				{"sam", "GET", "/v1/watches/notes", "", 200, `"writable":true`},
				{"sam", "GET", "/v1/watches/read-only", "", 200, `"count":2`},
				{"sam", "DELETE", at + "a", "", 200, `"deleted":true`},
				{"sam", "GET", at + "a", "", 404, ""},
			} {
				code, answer := p.ask(c.who, c.method, p.http, c.path, c.body)
				if code != c.code || !strings.Contains(answer, c.want) {
					t.Errorf("%d: %s: %s %s: %d %.300s, want %d and %s", i, c.who, c.method, c.path, code, answer, c.code, c.want)
				}
			}
			if name == "nats" {
				if code, answer := p.ask("sam", "PUT", p.http, at+url.PathEscape("a.>"), "1"); code != 400 || !strings.Contains(answer, "tokens between dots") {
					t.Errorf("a pattern: %d %s", code, answer)
				}
			}
			// Many writers of one key: each write that is answered is made over the one before.
			counted(t, p, at+"n")
		})
	}
}

// counted lets clients increment a number at the same time, each write over the revision that was read.
func counted(t *testing.T, p protected, path string) {
	if code, answer := p.ask("sam", "PUT", p.http, path, "0"); code != 201 {
		t.Fatalf("%d %s", code, answer)
	}
	const clients, times = 4, 10
	ended := make(chan error, clients)
	for range clients {
		go func() {
			for done := 0; done < times; {
				code, stdout, stderr := command(t, "get", "notes", "n", "-o", "jsonpath={.revision} {.value}", "--server", "http://"+p.http, "--token-file", p.tokenFile("sam"))
				var revision string
				var n int
				if _, err := fmt.Sscan(stdout, &revision, &n); code != 0 || err != nil {
					ended <- fmt.Errorf("get: exit code %d: %s%s", code, stdout, stderr)
					return
				}
				switch code, _, stderr := command(t, "put", "notes", "n", fmt.Sprint(n+1), "--if-revision", revision, "--server", "http://"+p.http, "--token-file", p.tokenFile("sam")); code {
				case 0:
					done++
				case 5: // another client was first
				default:
					ended <- fmt.Errorf("put: exit code %d: %s", code, stderr)
					return
				}
			}
			ended <- nil
		}()
	}
	for range clients {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if _, answer := p.ask("sam", "GET", p.http, path, ""); !strings.Contains(answer, fmt.Sprintf(`"value":%d`, clients*times)) {
		t.Errorf("%s, want %d", answer, clients*times)
	}
}

// tokenFile returns a file with the token of a client.
func (p protected) tokenFile(who string) string { return file(p.t, "token", p.tokens[who]) }
