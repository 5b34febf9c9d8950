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
	if _, table, _ := strings.Cut(left, "\n"); table != "KEY  N\na    30\nc    10\n" {
		t.Errorf("left on the terminal:\n%s", left)
	}
}

func TestOrderThatIsWrong(t *testing.T) {
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--order=n"}, "--limit, column 1: it is missing"}, {[]string{"--order=n", "--limit=2000"}, `--limit, column 1: "2000"`},
		{[]string{"--limit=2"}, "--limit, column 1: a limit belongs to an order: want --order too"}, {[]string{"--order=a..b", "--limit=2"}, "--order, column 3: "},
		{[]string{"--order=a:desc", "--limit=2"}, "want -a for descending"}, {[]string{"--keys=a,"}, `for "--keys" flag: column 3: a key is missing`},
		{[]string{"--first=\"a"}, `for "--first" flag: column 1: the quotation mark`},
	} {
		stderr := newLines()
		p := process{stdout: newLines(), stderr: stderr, signals: make(chan os.Signal), exit: func(int) {}}
		if got := run(t.Context(), p, append([]string{"watch", "notes", "--server", "http://127.0.0.1:1"}, test.flags...)); got != exitUsage || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%v: exit code %d, want %d: %s", test.flags, got, exitUsage, stderr.String())
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
