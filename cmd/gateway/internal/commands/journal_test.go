package commands

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// read follows a watch from an id on, until it is complete and confirmed by the upstream. It returns the types of events with their keys, and
// the last id.
func read(t *testing.T, address, watch, from string) (events []string, id string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/v1/events?watch="+watch, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	if from != "" {
		request.Header.Set("Last-Event-ID", from)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	last, synced, stale := "", false, false // a journal is served before the upstream has confirmed it
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		field, text, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			last = text
		case "data":
			if last == "status" {
				stale = !strings.Contains(text, `"in_sync"`)
			} else if _, key, ok := strings.Cut(text, `"key":"`); ok {
				key, _, _ = strings.Cut(key, `"`)
				events = append(events, last+" "+key)
			} else if last == "reset" {
				_, reason, _ := strings.Cut(text, `"reason":`)
				events = append(events, "reset "+strings.Trim(reason, `"}`))
			}
		case "id":
			id = text
		case "":
			synced = synced || last == "end_of_snapshot"
			if synced && !stale {
				return events, id
			}
		}
	}
	t.Fatalf("the stream ended after %q", events)
	return nil, ""
}

func wantEvents(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// journalled has the files of a gateway with a journal.
type journalled struct{ dir, config string }

func newJournalled(t *testing.T) journalled {
	t.Helper()
	j := journalled{dir: t.TempDir()}
	for _, folder := range []string{"files", "more"} {
		if err := os.Mkdir(filepath.Join(j.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	j.write(t, "files/a.json", `1`)
	j.write(t, "files/b.json", `2`)
	j.config = filepath.Join(j.dir, "gateway.yaml")
	j.write(t, "gateway.yaml", `
state: { dir: state }
sources: { f: { type: files, dir: files }, m: { type: files, dir: more } }
watches:
  kept: { source: f }
  plain: { source: f, journal: none }
  view: { view_of: kept, prefix: a }
`)
	return j
}

func (j journalled) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(j.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (j journalled) change(t *testing.T) {
	t.Helper()
	j.write(t, "files/c.json", `3`)
	if err := os.Remove(filepath.Join(j.dir, "files/b.json")); err != nil {
		t.Fatal(err)
	}
}

func (s *served) interrupt() {
	s.signals <- os.Interrupt
	s.awaitCode()
}

// TestJournal: after a restart, a client that does not verify gets what has changed, and no reset.
func TestJournal(t *testing.T) {
	j := newJournalled(t)
	g := serve(t, "--config", j.config)
	_, kept := read(t, g.http, "kept", "")
	_, plain := read(t, g.http, "plain", "")
	g.interrupt()
	j.change(t)
	g = serve(t, "--config", j.config)
	events, id := read(t, g.http, "kept", kept)
	wantEvents(t, "kept", events, "delete b", "upsert c")
	events, _ = read(t, g.http, "plain", plain)
	wantEvents(t, "journal: none", events, "reset epoch_changed", "upsert a", "upsert c")
	g.interrupt()
	g = serve(t, "--config", j.config)
	events, _ = read(t, g.http, "kept", id)
	wantEvents(t, "nothing has changed", events)
	events, _ = read(t, g.http, "kept", kept)
	wantEvents(t, "from before the last process", events, "delete b", "upsert c")
	g.interrupt()

	raw, err := os.ReadFile(j.config)
	if err != nil {
		t.Fatal(err)
	}
	j.write(t, "gateway.yaml", strings.Replace(string(raw), "kept: { source: f }", "kept: { source: m }", 1))
	g = serve(t, "--config", j.config)
	events, _ = read(t, g.http, "kept", id)
	wantEvents(t, "another directory", events, "reset epoch_changed")
	if !strings.Contains(g.logs.String(), "another configuration") {
		t.Errorf("nothing is said:\n%s", g.logs)
	}
}

// TestJournalAfterAKill: what was given out after the last write is nowhere, so that the revisions of this source
// begin a new order.
func TestJournalAfterAKill(t *testing.T) {
	j := newJournalled(t)
	g := serve(t, "--config", j.config)
	g.interrupt()
	c, logs := asProcess(t, "serve", "--config", j.config, "--http", "127.0.0.1:0")
	text := logs.await(t, `"msg":"listening"`)
	_, after, _ := strings.Cut(text, `"http":"`)
	address, _, _ := strings.Cut(after, `"`)
	_, id := read(t, address, "kept", "")
	_ = c.Process.Kill()
	_ = c.Wait()
	j.change(t)
	g = serve(t, "--config", j.config)
	events, _ := read(t, g.http, "kept", id)
	if len(events) != 3 || events[0] != "reset epoch_changed" {
		t.Errorf("%q, want a reset, a and c", events)
	}
}

// TestJournalOfAnotherProcess: the second one serves without it, and says so.
func TestJournalOfAnotherProcess(t *testing.T) {
	j := newJournalled(t)
	serve(t, "--config", j.config)
	second := serve(t, "--config", j.config)
	if !strings.Contains(second.logs.String(), "there is no journal") || !strings.Contains(second.logs.String(), "has it open") {
		t.Errorf("nothing is said:\n%s", second.logs)
	}
	events, _ := read(t, second.http, "view", "")
	wantEvents(t, "a view", events, "reset initial", "upsert a")
}

// TestJournalOfAReload: a watch goes on with its journal when it is replaced, and one that is gone leaves it.
func TestJournalOfAReload(t *testing.T) {
	j := newJournalled(t)
	g := serve(t, "--config", j.config)
	_, id := read(t, g.http, "kept", "")
	raw, err := os.ReadFile(j.config)
	if err != nil {
		t.Fatal(err)
	}
	j.write(t, "gateway.yaml", strings.Replace(string(raw), "kept: { source: f }", "kept: { source: f, history: { max_deletes: 7 } }", 1))
	g.logs.await(t, `"configuration reloaded"`)
	events, _ := read(t, g.http, "kept", id)
	wantEvents(t, "with another history", events)
}
