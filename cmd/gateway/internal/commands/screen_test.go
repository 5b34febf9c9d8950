package commands

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

func TestWatchDrawsATableOnATerminal(t *testing.T) {
	g := serve(t)
	g.put("a", `{"name":"one","n":1}`)
	out, signals := newLines(), make(chan os.Signal, 1)
	p := process{stdout: out, stderr: newLines(), signals: signals, exit: func(int) {},
		size: func() (int, int, error) { return 60, 10, nil }}
	code := make(chan int, 1)
	go func() { code <- run(t.Context(), p, []string{"watch", "notes", "--server", g.url()}) }()

	out.await(t, "notes  in_sync  revision 1  1 resource")
	out.await(t, "a    one   1")
	g.put("b", `{"name":"two","n":2}`)
	out.await(t, "b    two   2")
	signals <- os.Interrupt
	if got := <-code; got != 130 {
		t.Errorf("exit code %d, want 130", got)
	}
	text := out.String()
	if !strings.HasPrefix(text, enterScreen) || strings.Contains(text, `"type"`) {
		t.Errorf("got %q", text)
	}
	_, left, _ := strings.Cut(text, leaveScreen)
	left = regexp.MustCompile(`  verified \d\d:\d\d:\d\d`).ReplaceAllString(left, "  verified")
	if want := "notes  in_sync  revision 2  2 resources  verified\nKEY  NAME  N\na    one   1\nb    two   2\n"; left != want {
		t.Errorf("left on the terminal:\n%s\nwant\n%s", left, want)
	}
}

func TestWatchDrawsAWindowInItsOrder(t *testing.T) {
	g := serve(t)
	g.put("a", `{"n":1}`)
	g.put("b", `{"n":2}`)
	g.put("c", `{"n":10}`)
	out, signals := newLines(), make(chan os.Signal, 1)
	p := process{stdout: out, stderr: newLines(), signals: signals, exit: func(int) {},
		size: func() (int, int, error) { return 60, 10, nil }}
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), p, []string{"watch", "notes", "--order=-n", "--limit=2", "--server", g.url()})
	}()
	out.await(t, "c    10")
	g.put("a", `{"n":30}`)
	out.await(t, "a    30")
	signals <- os.Interrupt
	<-code
	_, left, _ := strings.Cut(out.String(), leaveScreen)
	head, table, _ := strings.Cut(left, "\n")
	if table != "KEY  N\na    30\nc    10\n" || !strings.Contains(head, "  2 of 3 resources") {
		t.Errorf("left on the terminal:\n%s", left)
	}
}

func TestSectionSaysHowManyAWindowIsOf(t *testing.T) {
	f := newFollowing(t.Context(), []string{"w", "v"}, nil, true)
	w := &section{name: "w", sortKey: func(r client.Resource) string { return r.Key }, table: terminal.NewTable()}
	want := func(text string, events ...client.Event) {
		t.Helper()
		for _, e := range events {
			if err := f.event(e); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.lines(f.watches["w"], 80, 10)[0]; !strings.HasSuffix(got, "  "+text) {
			t.Errorf("%q, want %q at its end", got, text)
		}
	}
	complete := func(watch, revision string, total int) client.Event {
		return client.Event{Type: client.EndOfSnapshot, Watch: watch, ID: watch + "@e-" + revision, Resource: client.Resource{Revision: revision}, Total: total}
	}
	upsert := client.Event{Type: client.Upsert, Watch: "w", Resource: client.Resource{Key: "k", Revision: "7", Value: []byte("1")}}
	want("1 of 1,234,567 resources", client.Event{Type: client.Reset, Watch: "w"}, upsert, complete("w", "7", 1234567))
	want("1 of 999 resources", client.Event{Type: client.Bookmark, Watch: "w", ID: "w@e-8", Resource: client.Resource{Revision: "8"}, Total: 999})
	want("1 of 999 resources", complete("v", "3", 5))
	want("0 of 0 resources", client.Event{Type: client.Reset, Watch: "w"}, complete("w", "9", 0))
}

// A mistake is found before there is a connection, and named as it stands on the command line.
func TestOrderThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--order=n"}, "--order: how many resources are wanted? Want --limit NUMBER too"},
		{[]string{"--order=n", "--limit=2000"}, `invalid argument "2000" for "--limit" flag: want 1 to 1000`},
		{[]string{"--order=n", "--limit=0"}, `"--limit" flag: want 1 to 1000`},
		{[]string{"--order=n", "--limit=-1"}, `"--limit" flag: want 1 to 1000`},
		{[]string{"--order=n", "--limit=1.5"}, `"--limit" flag: want 1 to 1000`},
		{[]string{"--order=n", "--limit=2", "--offset=-1"}, `"--offset" flag: want 0 to 2147483648`},
		{[]string{"--limit=2"}, "--limit: it counts in an order: want --order PATHS too"},
		{[]string{"--offset=2"}, "--offset: it counts in an order: want --order PATHS too"},
		{[]string{"--order=", "--limit=2"}, `"--order" flag: want PATHS`},
		{[]string{"--order=a..b", "--limit=2"}, "--order, column 3: "},
		{[]string{"--order=a:desc", "--limit=2"}, "want -a for descending"},
		{[]string{"--keys=a,"}, `for "--keys" flag: column 3: a key is missing`},
	} {
		for _, verb := range []string{"watch", "get"} {
			stderr := newLines()
			p := process{stdout: newLines(), stderr: stderr, signals: make(chan os.Signal), exit: func(int) {}}
			got := run(t.Context(), p, append([]string{verb, "notes", "--server", "http://127.0.0.1:1"}, c.flags...))
			if got != exitUsage || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("%s %v: exit code %d, want %d: %s, want %s", verb, c.flags, got, exitUsage, stderr.String(), c.want)
			}
		}
	}
}

// drawing is a screen in fake time, on a terminal of a given size.
func drawing(width, height int, names ...string) (*screen, *following, *lines) {
	f, out := newFollowing(context.Background(), names, nil, true), newLines()
	return newScreen(out, func() (int, int, error) { return width, height, nil }, f), f, out
}

func TestScreenDrawsAtMostTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, out := drawing(80, 24, "w")
		for range 5000 { // 5 seconds
			_ = f.event(client.Event{Type: "upsert", Watch: "w", Resource: client.Resource{Key: "k", Revision: "1", Value: []byte("1")}})
			_ = s.Event(client.Event{})
			time.Sleep(time.Millisecond)
		}
		frames := strings.Count(out.String(), home)
		if err := s.Close(); err != nil || frames < 45 || frames > 51 {
			t.Errorf("%d frames in 5 seconds, want 50; %v", frames, err)
		}
	})
}

func TestScreenDrawsChangesSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, out := drawing(80, 24, "w")
		time.Sleep(3500 * time.Millisecond) // between two idle frames
		_ = f.event(client.Event{Type: "status", Watch: "w", State: "priming", Reason: "not there yet"})
		_ = s.Event(client.Event{})
		time.Sleep(frameTime)
		if !strings.Contains(out.String(), "priming") {
			t.Error("not drawn after 100 ms")
		}
		_ = s.Close()
	})
}

func TestScreenDividesItsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, _ := drawing(40, 9, "a", "b")
		for _, watch := range []string{"a", "b"} {
			_ = f.event(client.Event{Type: "reset", Watch: watch})
			for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
				_ = f.event(client.Event{Type: "upsert", Watch: watch, Resource: client.Resource{Key: key, Revision: "7", Value: []byte(`"v"`)}})
			}
			_ = f.event(client.Event{Type: "end_of_snapshot", Watch: watch, ID: watch + "@e-7", Resource: client.Resource{Revision: "7"}})
		}
		_ = s.Close()
		const want = "a  connecting  revision 7  6 resources\nKEY  VALUE\n1    v\n… 5 more\n" +
			"b  connecting  revision 7  6 resources\nKEY  VALUE\n1    v\n2    v\n… 4 more"
		if got := strings.Join(s.lines(40, 9), "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		for height := range 9 {
			if got := s.lines(40, height); len(got) > height {
				t.Errorf("%d lines of %d", len(got), height)
			}
		}
	})
}

func TestScreenKeepsTheRowsWhileASnapshotLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, _ := drawing(60, 10, "w")
		upsert := func(key string) {
			_ = f.event(client.Event{Type: "upsert", Watch: "w", ID: "w@e-7/8", Resource: client.Resource{Key: key, Revision: "7", Value: []byte(`1`)}})
		}
		_ = f.event(client.Event{Type: "reset", Watch: "w"})
		upsert("old")
		_ = f.event(client.Event{Type: "end_of_snapshot", Watch: "w", ID: "w@e-7", Resource: client.Resource{Revision: "7"}})
		_ = s.Close()
		_ = s.lines(60, 10)
		_ = f.event(client.Event{Type: "reset", Watch: "w"})
		upsert("new")
		if got := strings.Join(s.lines(60, 10), "\n"); !strings.Contains(got, "old") || strings.Contains(got, "new") ||
			!strings.Contains(got, "loading, 1 so far") {
			t.Errorf("got\n%s", got)
		}
	})
}
