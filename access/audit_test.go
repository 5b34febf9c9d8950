package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is where lines go. It can be made to wait, and to fail after some bytes.
type output struct {
	mu     sync.Mutex
	text   bytes.Buffer
	room   int // bytes that are still taken; negative: any number
	closed int
	gate   chan struct{} // nil: no write waits
}

func (o *output) Write(p []byte) (int, error) {
	if o.gate != nil {
		<-o.gate
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	if o.room >= 0 {
		n = min(n, o.room)
		o.room -= n
	}
	o.text.Write(p[:n])
	if n < len(p) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed++
	return nil
}

func (o *output) setRoom(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room = n
}

// entries returns the lines that are whole, and how many are not.
func (o *output) entries(t interface{ Fatalf(string, ...any) }) (out []AuditEntry, cut int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(o.text.String()) {
		var e AuditEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			cut++
			continue
		}
		out = append(out, e)
	}
	return out, cut
}

// settle waits until everything is written.
func (l *AuditLog) settle() {
	for s, busy := l.sink.Load(), true; busy; runtime.Gosched() {
		s.mu.Lock()
		busy = s.running
		s.mu.Unlock()
	}
}

func newOutput() *output { return &output{room: -1} }

func TestLinesOfALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput()
		l := NewAuditLog()
		l.SetOutput(out)
		l.Record(AuditEntry{
			Decision: Allowed, Action: Open, Via: "session", Address: netip.MustParseAddr("192.0.2.1"), Watch: "orders",
			Rules: []AuditRule{{"tenant", 2}}, View: "abc",
		}.By(&Principal{Mechanism: JWT, Issuer: "https://idp.example.com", Name: "a\n\"b\u2028"}))
		l.Record(AuditEntry{Decision: Denied, Action: Credential, Status: 401, Reason: "invalid_token"})
		synctest.Wait()
		want := `{"time":"2000-01-01T00:00:00Z","decision":"allowed","action":"open","mechanism":"jwt","issuer":"https://idp.example.com","name":"a\n\"b\u2028","via":"session","address":"192.0.2.1","watch":"orders","rules":[{"role":"tenant","number":2}],"view":"abc"}
{"time":"2000-01-01T00:00:00Z","decision":"denied","action":"credential","status":401,"reason":"invalid_token"}
`
		if got := out.text.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		l.Close(time.Second)
		if out.closed != 1 {
			t.Errorf("closed %d times", out.closed)
		}
	})
}

// TestALogWithoutOutput records nothing, and neither does none.
func TestALogWithoutOutput(t *testing.T) {
	var none *AuditLog
	none.Record(AuditEntry{Action: Open})
	l := NewAuditLog()
	l.Record(AuditEntry{Action: Open})
	if none.Enabled() || l.Enabled() || l.Dropped() != 0 {
		t.Error("a log without an output is enabled")
	}
	l.Close(0)
}

// TestASlowOutputDelaysNobody, and what does not fit is counted and told of.
func TestASlowOutputDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput()
		out.gate = make(chan struct{})
		l := NewAuditLog()
		l.SetOutput(out)
		l.Record(AuditEntry{Decision: Allowed, Action: Get})
		synctest.Wait() // the goroutine waits with the first one
		const more = mostWaiting + 7
		for range more {
			l.Record(AuditEntry{Decision: Allowed, Action: Get})
		}
		if got := l.Dropped(); got != 7 {
			t.Errorf("%d entries are lost, want 7", got)
		}
		close(out.gate)
		synctest.Wait()
		got, cut := out.entries(t)
		if len(got) != 1+mostWaiting+1 || cut != 0 || got[1].Action != Lost || got[1].Count != 7 {
			t.Errorf("%d lines, %d of them cut, the second is %+v: want a line that tells of 7", len(got), cut, got[1])
		}
		l.Close(time.Second)
	})
}

// TestAStuckOutputDoesNotKeepTheGatewayAlive, nor does it keep another one from taking over.
func TestAStuckOutputDoesNotKeepTheGatewayAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, next := newOutput(), newOutput()
		stuck.gate = make(chan struct{})
		l := NewAuditLog()
		l.SetOutput(stuck)
		l.Record(AuditEntry{Decision: Allowed, Action: Get})
		l.SetOutput(next)
		l.Record(AuditEntry{Decision: Allowed, Action: List})
		synctest.Wait()
		if got, _ := next.entries(t); len(got) != 1 || got[0].Action != List {
			t.Errorf("the next output has %+v", got)
		}
		next.gate = make(chan struct{})
		l.Record(AuditEntry{Decision: Allowed, Action: List})
		begun := time.Now()
		l.Close(2 * time.Second)
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("closing took %s", took)
		}
		close(stuck.gate)
		close(next.gate)
		synctest.Wait()
		if stuck.closed != 1 || next.closed != 1 {
			t.Errorf("closed %d and %d times", stuck.closed, next.closed)
		}
	})
}

// TestAFullDisk: every entry is written or counted, a cut line spoils no other one, and the
// log says how many were lost once there is room again.
func TestAFullDisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rooms := rapid.SliceOfN(rapid.IntRange(0, 400), 1, 6).Draw(t, "rooms")
		out := newOutput()
		l := NewAuditLog()
		l.SetOutput(out)
		sent := 0
		for _, room := range append(rooms, -1) {
			out.setRoom(room)
			for range 3 {
				l.Record(AuditEntry{Decision: Allowed, Action: Write, Revision: uint64(sent + 1), Name: "ann", Mechanism: "token"})
				sent++
				l.settle()
			}
		}
		got, cut := out.entries(t)
		whole, told := 0, uint64(0)
		for _, e := range got {
			if e.Action == Lost {
				told += e.Count
			} else {
				whole++
			}
		}
		if lost := l.Dropped(); whole+int(lost) != sent || told != lost || cut > 2*len(rooms)+2 {
			t.Fatalf("%d entries: %d lines, %d lost, %d told of, %d cut", sent, whole, lost, told, cut)
		}
		l.Close(time.Second)
	})
}

// TestNobodyFillsADisk with what is denied to nobody in particular: it is counted.
func TestNobodyFillsADisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newOutput()
		l := NewAuditLog()
		l.SetOutput(out)
		send := func(address string, times int) {
			for range times {
				l.Record(AuditEntry{Decision: Denied, Action: Credential, Address: netip.MustParseAddr(address)})
			}
		}
		send("192.0.2.1", 1000)
		for i := range 100 {
			send(fmt.Sprintf("2001:db8::%x", i), 10) // one network
		}
		for i := range 200 {
			send(fmt.Sprintf("10.0.0.%d", i), 3)
		}
		l.Record(AuditEntry{Decision: Allowed, Action: Open, Address: netip.MustParseAddr("192.0.2.1")}.By(Nobody()))
		l.Record(AuditEntry{Decision: Denied, Action: Open, Address: netip.MustParseAddr("192.0.2.1")}.By(&Principal{Mechanism: Token, Name: "ci"}))
		synctest.Wait()
		before, _ := out.entries(t)
		time.Sleep(floodWindow)
		synctest.Wait()
		after, _ := out.entries(t)
		counts, total := map[string]uint64{}, uint64(0)
		for _, e := range after[len(before):] {
			if e.Action != Repeated || e.Decision != Denied {
				t.Errorf("line %+v", e)
			}
			total += e.Count
			counts[e.Address.String()] = e.Count
		}
		lines := len(before) - 2
		if counts["192.0.2.1"] != 990 || counts["2001:db8::"] != 990 || lines > mostOfAll || total+uint64(lines) != 1000+1000+600 {
			t.Errorf("%d lines, and %d counted: %v", lines, total, counts)
		}
		if counts["invalid IP"] == 0 || len(counts) > mostNetworks+1 {
			t.Errorf("%d lines tell of networks: %v", len(counts), counts)
		}
		send("192.0.2.1", 1)
		l.Close(time.Second)
		if got, _ := out.entries(t); len(got) != len(after)+1 {
			t.Error("after a minute, an address is still only counted")
		}
	})
}

// TestSumsAreNotLost if the gateway ends, or has another output, before the minute is over.
func TestSumsAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []func(*AuditLog){func(l *AuditLog) { l.Close(time.Second) }, func(l *AuditLog) { l.SetOutput(nil) }} {
			out := newOutput()
			l := NewAuditLog()
			l.SetOutput(out)
			for range 15 {
				l.Record(AuditEntry{Decision: Denied, Action: Credential})
			}
			end(l)
			synctest.Wait()
			got, _ := out.entries(t)
			if len(got) != 11 || got[10].Count != 5 || out.closed != 1 {
				t.Errorf("%d lines, closed %d times: want 10 and a sum", len(got), out.closed)
			}
		}
	})
}

// TestTextsAreBounded, since others have chosen them.
func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 10_000)
	text, err := json.Marshal(AuditEntry{Action: Open, Watch: long, Name: long, Issuer: long, Reason: long}.bounded())
	if err != nil || len(text) > 5*longestText || !json.Valid(text) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// FuzzEntry: whatever names are, an entry is one line, and the same when it is read again.
func FuzzEntry(f *testing.F) {
	f.Add("ann", "https://idp.example.com", "orders")
	f.Add("a\nb", "\xff\u2028", `"}`)
	f.Fuzz(func(t *testing.T, name, issuer, watch string) {
		out := newOutput()
		l := NewAuditLog()
		l.SetOutput(out)
		l.Record(AuditEntry{Decision: Allowed, Action: Open, Watch: watch}.By(&Principal{Mechanism: JWT, Issuer: issuer, Name: name}))
		l.Close(time.Minute)
		got, cut := out.entries(t)
		if len(got) != 1 || cut != 0 || strings.Count(out.text.String(), "\n") != 1 {
			t.Fatalf("%q", out.text.String())
		}
		if utf8.ValidString(name) && len(name) <= longestText && got[0].Name != name {
			t.Errorf("name %q, want %q", got[0].Name, name)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	l := NewAuditLog()
	l.SetOutput(newOutput())
	e := AuditEntry{Decision: Allowed, Action: Get, Watch: "orders", Rules: []AuditRule{{"tenant", 2}}}.By(&Principal{Mechanism: Token, Name: "ci"})
	b.ReportAllocs()
	for b.Loop() {
		l.Record(e)
	}
	l.Close(time.Minute)
}

// TestLinesAreVisible: names that others choose can neither add a line nor change how a
// terminal shows one.
func TestLinesAreVisible(t *testing.T) {
	const name = "a\n\"}\x1b[31m\u009b31m\x7f\u202e\U000e0001é世😀"
	o := &output{room: -1}
	l := NewAuditLog()
	l.SetOutput(o)
	l.Record(AuditEntry{Decision: Denied, Action: Open, Mechanism: JWT, Name: name, Watch: name})
	l.Close(time.Minute)
	for i, r := range o.text.String() {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Errorf("%U at %d of %q", r, i, o.text.String())
		}
	}
	all, cut := o.entries(t)
	if len(all) != 1 || cut != 0 || all[0].Name != name || all[0].Watch != name || !strings.Contains(o.text.String(), "é世😀") {
		t.Errorf("%d lines are cut, the others are %+v", cut, all)
	}
}
