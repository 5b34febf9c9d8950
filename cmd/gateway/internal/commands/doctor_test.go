package commands

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/cmd/gateway/internal/doctor"
)

// TestDoctor examines a gateway, and one that is not there. A machine that is busy enough may
// look like a slow proxy: so the exit code is compared with what was found.
func TestDoctor(t *testing.T) {
	s := serve(t, "--config", file(t, "gateway.yaml", `
stream: { heartbeat: 50ms }
sources: { local: { type: store } }
watches: { notes: { source: local } }
`))
	s.awaitPrimed()
	code, out, stderr := command(t, "doctor", s.url(), "--wait", "200ms")
	well := !strings.Contains("\n"+out, "\nproblem")
	if !strings.HasPrefix(out, "ok       connection   the gateway answers") || !strings.Contains(out, " heartbeats   ") || (code == exitOK) != well || (stderr == "") != well {
		t.Errorf("code %d\n%s\n%s", code, out, stderr)
	}

	code, out, stderr = command(t, "doctor", "http://127.0.0.1:1", "-o", "json")
	var found struct {
		URL      string
		Findings []doctor.Finding
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if code != exitError || stderr != "watchtide: there is a problem\n" || len(found.Findings) != 1 || found.URL != "http://127.0.0.1:1" {
		t.Fatalf("code %d\n%s\n%s", code, out, stderr)
	}
	if f := found.Findings[0]; f.Check != doctor.Connection || f.Result != doctor.Problem || f.Found == "" || f.Mend == "" {
		t.Errorf("%+v", f)
	}

	code, _, stderr = command(t, "doctor", s.url(), "--wait", "1m", "--timeout", "61s", "--watch", "nosuch")
	if code != exitError {
		t.Errorf("a watch that does not exist: code %d, %s", code, stderr)
	}
}

// TestDoctorEnds checks that the doctor ends when its time is over, and when it is interrupted.
func TestDoctorEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	code, out, stderr := command(t, "doctor", "http://"+silent.Addr().String(), "--timeout", "20ms", "-o", "json")
	if code != exitTimeout || !strings.Contains(stderr, "--timeout is over") || !json.Valid([]byte(out)) {
		t.Errorf("code %d\n%s\n%s", code, out, stderr)
	}
	s := serve(t, "--config", file(t, "gateway.yaml", "sources: { local: { type: store } }\nwatches: { notes: { source: local } }\n"))
	s.awaitPrimed()
	r := start(t, "doctor", s.url())
	for !strings.Contains(r.line(), " resume ") {
	}
	r.signals <- os.Interrupt
	if code := r.awaitCode(); code != 130 {
		t.Errorf("code %d, want 130", code)
	}
}

// TestDoctorOfAJournal examines the folder of a journal, while the gateway runs and after it has ended.
func TestDoctorOfAJournal(t *testing.T) {
	j := newJournalled(t)
	g := serve(t, "--config", j.config)
	_, _ = read(t, g.http, "kept", "")
	folder := filepath.Join(j.dir, "state")
	if code, out, stderr := command(t, "doctor", "--state", folder); code != exitOK || !strings.Contains(out, "has it open") {
		t.Errorf("code %d\n%s\n%s", code, out, stderr)
	}
	g.interrupt()
	if code, out, stderr := command(t, "doctor", "--state", folder); code != exitOK || !strings.Contains(out, "up to their end: 1 of 1") {
		t.Errorf("code %d\n%s\n%s", code, out, stderr)
	}
	if err := os.Chmod(filepath.Join(folder, "journal.db"), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := command(t, "doctor", "--state", folder, "-o", "json"); code != exitError || !strings.Contains(out, "chmod 600") || !json.Valid([]byte(out)) {
		t.Errorf("code %d\n%s\n%s", code, out, stderr)
	}
}

// TestDoctorsCommandLine checks that a wrong command line is refused.
func TestDoctorsCommandLine(t *testing.T) {
	t.Setenv("WATCHTIDE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	for _, args := range [][]string{
		{"a", "b"}, {"127.0.0.1:8080"}, {"http://127.0.0.1:1", "--server", "http://127.0.0.1:1"}, {"http://127.0.0.1:1", "--context", "prod"},
		{"--context", "nosuch"}, {"http://127.0.0.1:1", "--header", "Authorization: x"}, {"http://127.0.0.1:1", "--ca-file", "x"},
		{"--server", "http://user:password@127.0.0.1:1"}, {"http://127.0.0.1:1", "-o", "yaml"}, {"http://127.0.0.1:1", "--timeout", "0s"},
		{"http://127.0.0.1:1", "--wait", "3m"}, {"http://127.0.0.1:1", "--wait", "6m", "--timeout", "9m"}, {"http://127.0.0.1:1", "--origin", "x"},
		{"http://127.0.0.1:1", "--token-file", "/nowhere"}, {"http://127.0.0.1:1", "--state", "x"}, {"--state", ""},
	} {
		if code, _, stderr := command(t, append([]string{"doctor"}, args...)...); code != exitUsage || !strings.Contains(stderr, "Try --help.") || strings.Contains(stderr, "password@") {
			t.Errorf("%q: code %d, %s", args, code, stderr)
		}
	}
}

// TestDoctorTrustsAFile examines a gateway whose certificate no authority of the system signed.
func TestDoctorTrustsAFile(t *testing.T) {
	p := newPair(t, 24*365) // valid for a year
	cert, key := file(t, "cert.pem", p.cert), file(t, "key.pem", p.key)
	s := serve(t, "--config", file(t, "gateway.yaml", `
http: { tls: { cert_file: "`+cert+`", key_file: "`+key+`" } }
sources: { local: { type: store } }
watches: { notes: { source: local } }
`))
	s.awaitPrimed()
	url := strings.Replace(s.url(), "http://127.0.0.1", "https://127.0.0.1", 1)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "\nproblem  certificate  "},
		{[]string{"--ca-file", cert}, "\nok       certificate  "},
		{[]string{"--ca-file", key}, "has no certificate: want PEM"},
	} {
		_, out, stderr := command(t, append([]string{"doctor", url, "--wait", "200ms"}, c.args...)...)
		if !strings.Contains("\n"+out+stderr, c.want) {
			t.Errorf("%v: want %q in\n%s%s", c.args, c.want, out, stderr)
		}
	}
}

// TestDoctorOfAContext checks that the doctor examines the gateway of a context, or of the
// environment, with the credentials and the headers that the other commands would send.
func TestDoctorOfAContext(t *testing.T) {
	var mu sync.Mutex
	var got []string
	s := ask(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if who := strings.TrimSpace(r.Header.Get("Authorization") + " " + r.Header.Get("X-Key")); !slices.Contains(got, who) {
			got = append(got, who)
		}
		http.Error(w, "{}", http.StatusForbidden)
	})
	t.Setenv("WATCHTIDE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	t.Setenv("WATCHTIDE_TOKEN", "env")
	command(t, "context", "set", "prod", "--server", s.URL, "--token-file", file(t, "token", "prod-token"), "--header", "X-Key: prod-key")
	for _, c := range []struct {
		server string // WATCHTIDE_SERVER
		args   []string
		want   string
	}{
		{"", nil, "Bearer prod-token prod-key"},
		{"http://127.0.0.1:1", []string{"--context", "prod"}, "Bearer prod-token prod-key"},
		{"", []string{"--header", "X-Key: mine"}, "Bearer prod-token mine"},
		{"", []string{s.URL}, "Bearer env"},
		{"", []string{s.URL, "--header", "X-Key: mine"}, "Bearer env mine"},
		{"", []string{"--server", s.URL}, "Bearer env"},
		{s.URL, nil, "Bearer env"},
	} {
		t.Setenv("WATCHTIDE_SERVER", c.server)
		got = nil
		code, out, stderr := command(t, append([]string{"doctor"}, c.args...)...)
		mu.Lock()
		if code != exitError || !slices.Contains(got, c.want) || slices.ContainsFunc(got, func(who string) bool { return who != c.want && who != "" }) {
			t.Errorf("%q, %q: exit code %d: %s%s\nsent %q, want %q", c.server, c.args, code, out, stderr, got, c.want)
		}
		mu.Unlock()
	}
}

// TestDoctorWithAClientCertificate examines a gateway that asks for a certificate.
func TestDoctorWithAClientCertificate(t *testing.T) {
	cert, key, _ := certificate(t)
	g := serve(t, "--config", file(t, "gateway.yaml", fmt.Sprintf(`
http: { tls: { cert_file: %q, key_file: %q, client_ca_file: %q } }
auth: { certificates: { subject: dns } }
roles: { known: { when: 'principal.name == "gateway.test"' } }
sources: { local: { type: store } }
watches: { notes: { source: local, allow: [ { role: known, read: "true" } ] } }
`, cert, key, cert)))
	t.Setenv("WATCHTIDE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	command(t, "context", "set", "tls", "--server", "https://"+g.http, "--ca-file", cert, "--cert-file", cert, "--key-file", key)
	if _, out, stderr := command(t, "doctor", "--wait", "200ms"); !strings.Contains(out, "\nok       connection ") || !strings.Contains(out, "\nok       resume ") {
		t.Errorf("with a client certificate:\n%s%s", out, stderr)
	}
	if code, out, _ := command(t, "doctor", "https://"+g.http, "--ca-file", cert); code != exitError || strings.Contains(out, " resume ") {
		t.Errorf("without: exit code %d\n%s", code, out)
	}
}
