package gateway

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/source/files"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// revokedIn makes the watch of revocations one of the files in a directory.
func revokedIn(t *testing.T, dir string) func(*Config) {
	return func(c *Config) {
		source, err := files.New(files.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Registry.Add(watch.Config{Name: "revocations", SourceName: "disk", Source: source})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Prime(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Access.Revoked = "revocations"
	}
}

// TestRevocationsSurviveARestart, since their source does.
func TestRevocationsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	before := newDoorRig(t, false, revokedIn(t, dir))
	if got := before.who(bearer(before.ann)); got != "token ann" {
		t.Fatal(got)
	}
	if err := os.Mkdir(filepath.Join(dir, "token"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token", "ann.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	after := newDoorRig(t, false, revokedIn(t, dir))
	if got := after.who(bearer(after.ann)); got != "401 Unauthorized" {
		t.Errorf("after a restart: %s", got)
	}
	if got := after.who(bearer(after.ci)); got != "token ci" {
		t.Errorf("somebody else: %s", got)
	}
}

// revokedInStore makes the watch of revocations one of a store in a file, which is closed by close.
func revokedInStore(t *testing.T, path string, tokens *access.TokenTable) (change func(*Config), w func() *watch.Watch, done func()) {
	s, err := store.Open(store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	var made *watch.Watch
	return func(c *Config) {
		made, err = c.Registry.Add(watch.Config{Name: "revocations", SourceName: "disk", Source: s.Source("revocations"), Writer: s.Writer("revocations")})
		if err != nil {
			t.Fatal(err)
		}
		if err := made.Prime(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Access.Revoked, c.Access.Credentials.Tokens = "revocations", tokens
	}, func() *watch.Watch { return made }, s.Close
}

// twoTokens returns a table of tokens, and the texts of those of ann and ci.
func twoTokens(t *testing.T) (table *access.TokenTable, ann, ci string) {
	ann, annLine, err := access.NewToken("ann", []string{"staff"})
	if err != nil {
		t.Fatal(err)
	}
	ci, ciLine, err := access.NewToken("ci", nil)
	if err != nil {
		t.Fatal(err)
	}
	if table, err = access.ParseTokens([]byte(annLine + "\n" + ciLine)); err != nil {
		t.Fatal(err)
	}
	return table, ann, ci
}

// TestEndedSessionsSurviveARestart, and revoked tokens, with a store in a file.
func TestEndedSessionsSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "revoked.db")
	tokens, ann, ci := twoTokens(t)
	change, _, stop := revokedInStore(t, path, tokens)
	before := newDoorRig(t, false, change)
	cookie := func() string {
		answer := before.send("POST", "/v1/session", "", bearer(ann))
		if answer.StatusCode != http.StatusNoContent {
			t.Fatal(answer.Status)
		}
		for _, c := range answer.Cookies() {
			return "Cookie: " + c.Name + "=" + c.Value
		}
		t.Fatal("no cookie")
		return ""
	}
	before.client.Jar = nil
	stays, ends := cookie(), cookie()
	if got := before.who(ends); got != "token ann" {
		t.Fatal(got)
	}
	if got := before.send("DELETE", "/v1/session", "", ends); got.StatusCode != http.StatusNoContent {
		t.Fatal(got.Status)
	}
	revoke(t, before, "token/ci")
	before.server.Close()
	before.gateway.registry.Close()
	stop()

	change, _, stop = revokedInStore(t, path, tokens)
	defer stop()
	after := newDoorRig(t, false, change)
	after.client.Jar = nil
	for _, c := range []struct{ what, header, want string }{
		{"the ended session", ends, "401 Unauthorized"}, {"the other session", stays, "token ann"},
		{"the revoked token", bearer(ci), "401 Unauthorized"}, {"the token of the sessions", bearer(ann), "token ann"},
	} {
		if got := after.who(c.header); got != c.want {
			t.Errorf("after a restart, %s: %s, want %s", c.what, got, c.want)
		}
	}
}

// revoke writes a revocation as a client would that may.
func revoke(t *testing.T, r *doorRig, key string) {
	t.Helper()
	w, ok := r.gateway.registry.Watch("revocations")
	if !ok {
		t.Fatal("there is no watch of revocations")
	}
	if _, _, err := w.Writer().Put(t.Context(), stream.PutRequest{Key: key, Value: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
}

// TestKeptEndings end what they say, and are removed when nothing of it can be used any more.
func TestKeptEndings(t *testing.T) {
	tokens, _, _ := twoTokens(t)
	change, watchOf, stop := revokedInStore(t, filepath.Join(t.TempDir(), "revoked.db"), tokens)
	defer stop()
	rig := newDoorRig(t, false, change)
	w, r := watchOf(), &revocations{registry: rig.gateway.registry, watch: "revocations", most: 5}
	await := func(what string, is func() bool) {
		t.Helper()
		late := time.After(10 * time.Second)
		for changed := w.Changed(); !is(); changed = w.Changed() {
			select {
			case <-changed:
			case <-late:
				t.Fatalf("%s: there are %d resources", what, w.Snapshot().Count())
			}
		}
	}
	seen := func(what string, count int) {
		t.Helper()
		await(what, func() bool { return w.Snapshot().Count() == count })
	}
	keep := func(e credential.Ending) {
		t.Helper()
		if err := r.Keep(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	ann, ci := &access.Principal{Mechanism: access.Token, Name: "ann"}, &access.Principal{Mechanism: access.Token, Name: "ci"}
	soon, late := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	keep(credential.Ending{Session: "session/a", Whose: credential.EndingsKey(ann), Expires: soon})
	keep(credential.Ending{Session: "session/b", Whose: credential.EndingsKey(ann), Expires: late})
	revoke(t, rig, "token/other")
	seen("two sessions and a revocation", 3)
	if until := r.SessionsEnded(ann); !until.IsZero() {
		t.Errorf("all sessions until %v have ended", until)
	}
	ended := time.Now()
	keep(credential.Ending{Session: "session/c", Whose: credential.EndingsKey(ann), Expires: late, Until: ended, Needless: []string{"session/a", "session/c"}})
	await("those of a principal", func() bool {
		return w.Snapshot().Count() == 3 && !r.SessionsEnded(ann).Before(ended.Truncate(time.Millisecond))
	})
	keep(credential.Ending{Session: "session/d", Whose: credential.EndingsKey(ann), Expires: soon})
	keep(credential.Ending{Session: "session/e", Whose: credential.EndingsKey(ann), Expires: soon})
	seen("up to the most", 5)
	keep(credential.Ending{Session: "session/f", Whose: credential.EndingsKey(ci), Expires: soon})
	keep(credential.Ending{Session: "session/g", Whose: credential.EndingsKey(ci), Expires: soon})
	seen("beyond it, one of each principal", 6)
	revoke(t, rig, "token/last")
	seen("everything before the last revocation", 7)
	for _, c := range []struct {
		at    time.Time
		count int
	}{{soon.Add(-time.Minute), 7}, {soon.Add(time.Minute), 4}, {late.Add(time.Minute), 2}} {
		if err := forgetEndings(t.Context(), w, c.at); err != nil {
			t.Fatal(err)
		}
		seen("after the sweep", c.count)
	}
	if _, ok := w.Snapshot().Get("token/other"); !ok {
		t.Error("a revocation was removed")
	}
}
