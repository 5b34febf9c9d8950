package commands

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access"
)

// TestReplicasWithCredentials: a gateway asks another one whose operations listener has a private
// authority and serves holders of a role only. A token that is wrong is replaced while it runs,
// and never shown; a file that is not one line changes nothing.
func TestReplicasWithCredentials(t *testing.T) {
	const watches = "\nsources: { local: { type: store } }\nwatches: { notes: { source: local } }\n"
	right, line, err := access.NewToken("replica", []string{"staff"})
	if err != nil {
		t.Fatal(err)
	}
	server := newPair(t, 1)
	sibling := serve(t, "--operations", "0.0.0.0:0", "--config", file(t, "gateway.yaml", `
auth: { tokens_file: `+file(t, "tokens", line)+` }
roles: { staff: { when: '"staff" in principal.groups' } }
operations: { role: staff, tls: { cert_file: `+file(t, "cert.pem", server.cert)+`, key_file: `+file(t, "key.pem", server.key)+` } }`+watches))
	port := sibling.operations[strings.LastIndexByte(sibling.operations, ':'):]

	dir := t.TempDir()
	tokenFile, conf := filepath.Join(dir, "token"), filepath.Join(dir, "gateway.yaml")
	const wrong = "wt_wr0ng"
	rewrite(t, tokenFile, wrong+"\n")
	rewrite(t, conf, `
operations:
  replicas: ["https://127.0.0.1`+port+`"]
  replicas_token_file: token
  replicas_tls: { ca_file: `+file(t, "ca.pem", server.cert)+` }`+watches)
	g := serve(t, "--config", conf)
	ask := func() string {
		_, answer := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+"/v1/replicas", "")
		return answer
	}
	if answer := ask(); !strings.Contains(answer, "the answer is 401: want a token") {
		t.Errorf("with another token: %s", answer)
	}
	rewrite(t, tokenFile, right+"\n")
	g.logs.await(t, `"msg":"configuration reloaded"`)
	rewrite(t, tokenFile, "broken\n"+right+"\n")
	g.logs.await(t, "the old one stays in effect")
	if answer := ask(); !strings.Contains(answer, `"address":"https://127.0.0.1`+port+`","answer":{"instance":"`) || strings.Contains(answer, `"error"`) {
		t.Errorf("with the token: %s", answer)
	}
	if all := g.logs.String() + sibling.logs.String() + ask(); strings.Contains(all, wrong) || strings.Contains(all, right) {
		t.Error("a token is shown")
	}
}
