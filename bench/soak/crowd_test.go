//go:build servers

package soak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// asCrowd holds the order for a crowd process, as JSON.
const asCrowd = "WATCHTIDE_SOAK_CROWD"

// order is the crowd's configuration at its start.
type order struct {
	Address string
	Members int
	Stay    time.Duration // of one connection, on average
	Away    time.Duration // between two
	Stall   time.Duration
}

// attendance is the report of the crowd every second, and at its end.
type attendance struct {
	Open, Stalled                       int
	Joins, Resumes, Leaves, Resets      int
	Stalls, Refused, Lost, Bytes, Reads uint64
	Gone                                bool
}

// crowd are the subscribers whose events are not checked, seen from the test.
type crowd struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	gone  chan struct{} // closed when all have disconnected
	ended chan struct{} // closed after its last report

	// Atomic.
	last atomic.Pointer[attendance]
}

// gather starts the crowd, this very program as another process.
func gather(t *testing.T, o order) *crowd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{cmd: exec.Command(os.Args[0]), gone: make(chan struct{}), ended: make(chan struct{})}
	c.cmd.Env, c.cmd.Stderr = append(os.Environ(), asCrowd+"="+string(text)), os.Stderr
	c.last.Store(&attendance{})
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.stdin = stdin
	go c.listen(stdout)
	t.Cleanup(func() {
		stdin.Close()
		<-c.ended
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("the crowd: %v", err)
		}
	})
	return c
}

func (c *crowd) listen(stdout io.Reader) {
	defer close(c.ended)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var a attendance
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		if c.last.Store(&a); a.Gone {
			close(c.gone)
		}
	}
}

// leave makes all subscribers disconnect, and returns when they have.
func (c *crowd) leave() error {
	if _, err := fmt.Fprintln(c.stdin, "leave"); err != nil {
		return fmt.Errorf("the crowd: %w", err)
	}
	select {
	case <-c.gone:
		return nil
	case <-c.ended:
		return fmt.Errorf("the crowd ended")
	case <-time.After(patience):
		return fmt.Errorf("the crowd has not disconnected within %v", patience)
	}
}

// members are the crowd in its own process. Owned by its one goroutine.
type members struct {
	order
	client  *load.Client
	open    []int // numbers of connections that are neither stalled nor over
	stalled []int
	away    []int
	over    []int // the gateway has just ended them
	now     attendance
}

// crowdMain is the process. It ends with its standard input.
func crowdMain(text string) error {
	m := &members{}
	if err := json.Unmarshal([]byte(text), &m.order); err != nil {
		return err
	}
	client, err := load.New(load.Options{Address: m.Address, IDs: true, OnEnd: func(n int, _ error) { m.over = append(m.over, n) }})
	if err != nil {
		return err
	}
	m.client = client
	told := make(chan string)
	go func() {
		defer close(told)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			told <- lines.Text()
		}
	}()
	return m.run(told)
}

// run lets them connect and disconnect until they are asked to end.
func (m *members) run(told <-chan string) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for last := time.Now(); ; {
		select {
		case _, ok := <-told:
			if !ok {
				return m.client.Close()
			}
			m.leaveAll()
			m.now.Gone = true
			m.report()
			for range told {
			}
			return m.client.Close()
		case <-second.C:
			m.report()
		default:
		}
		if _, err := m.client.Poll(10 * time.Millisecond); err != nil {
			return err
		}
		now := time.Now()
		if err := m.act(now.Sub(last)); err != nil {
			return err
		}
		last = now
	}
}

func (m *members) report() {
	s := m.client.Stats()
	m.now.Open, m.now.Stalled = len(m.open)+len(m.stalled), len(m.stalled)
	m.now.Refused, m.now.Lost, m.now.Bytes, m.now.Reads = s.Refused, s.Lost, s.Bytes, s.Reads
	_ = json.NewEncoder(os.Stdout).Encode(m.now) // if there is no listener, the test is gone
}

// some removes the due members from a list: each stays in it for a random time.
func some(list *[]int, passed, average time.Duration) (out []int) {
	due := float64(len(*list)) * passed.Seconds() / average.Seconds()
	for n := int(due + rand.Float64()); n > 0 && len(*list) > 0; n-- {
		i, last := rand.IntN(len(*list)), len(*list)-1
		out = append(out, (*list)[i])
		(*list)[i] = (*list)[last]
		*list = (*list)[:last]
	}
	return out
}

// act does the actions that are due after some time.
func (m *members) act(passed time.Duration) error {
	for _, n := range m.over {
		for _, list := range []*[]int{&m.open, &m.stalled} {
			if i := slices.Index(*list, n); i >= 0 {
				*list = slices.Delete(*list, i, i+1)
				m.away = append(m.away, n)
			}
		}
	}
	m.over = m.over[:0]
	for _, n := range some(&m.open, passed, m.Stay) {
		m.end(n)
	}
	for _, n := range some(&m.open, passed, 4*m.Stay) {
		m.client.Stall(n)
		m.stalled = append(m.stalled, n)
		m.now.Stalls++
	}
	for _, n := range some(&m.stalled, passed, m.Stall) {
		m.client.Resume(n)
		m.open = append(m.open, n)
	}
	return m.join(passed)
}

// end closes a connection.
func (m *members) end(n int) {
	m.away = append(m.away, n)
	if m.now.Leaves++; rand.IntN(2) == 0 {
		m.now.Resets++
		m.client.Reset(n)
		return
	}
	m.client.Hangup(n)
}

// inFlight is how many may wait for their answer at a time.
const inFlight = 256

// join adds new members, and those that reconnect.
func (m *members) join(passed time.Duration) error {
	s := m.client.Stats()
	room := inFlight - int(s.Connected-s.Answered)
	for n := m.client.Len(); n < m.Members && room > 0; n++ {
		if _, err := m.client.Connect(m.request(n, "")); err != nil {
			return err
		}
		m.open = append(m.open, n)
		m.now.Joins++
		room--
	}
	for _, n := range some(&m.away, passed, m.Away) {
		id := m.client.LastID(n)
		if rand.IntN(5) == 0 {
			id = ""
		}
		if id != "" {
			m.now.Resumes++
		}
		if err := m.client.Reconnect(n, m.request(n, id)); err != nil {
			return err
		}
		m.open = append(m.open, n)
		m.now.Joins++
	}
	return nil
}

func (m *members) leaveAll() {
	for _, n := range append(m.open, m.stalled...) {
		m.end(n)
	}
	m.open, m.stalled = nil, nil
}

// wishes are the requests of members, in turns: one watch, the other, or both; some
// of them a part, in the other format, or compressed.
var wishes = []struct {
	query, accept, encoding string
}{
	{"watch=services", "text/event-stream", ""},
	{"watch=settings", "text/event-stream", ""},
	{"watch=services&watch=settings", "text/event-stream", ""},
	{"watch=services&prefix=f3/", "text/event-stream", ""},
	{"watch=settings&prefix=f5/", "text/event-stream", ""},
	{"watch=services", "application/x-ndjson", ""},
	{"watch=settings&prefix=f1/", "text/event-stream", ""},
	{"watch=services&watch=settings&prefix.services=f0/&prefix.settings=f7/", "text/event-stream", ""},
	{"watch=services", "text/event-stream", "gzip"},
	{"watch=settings&prefix=f2/", "text/event-stream", ""},
}

func (m *members) request(n int, id string) load.Request {
	w := wishes[n%len(wishes)]
	r := fmt.Appendf(nil, "GET /v1/events?%s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n\r\n", w.query, m.Address, w.accept)
	if w.encoding != "" {
		r = load.With(r, "Accept-Encoding", w.encoding)
	}
	if id != "" {
		r = load.With(r, "Last-Event-ID", id)
	}
	out := load.Request{Bytes: r}
	if rand.IntN(20) == 0 {
		out.ReceiveBuffer = 4 << 10
	}
	return out
}
