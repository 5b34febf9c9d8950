package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"pgregory.net/rapid"
)

// writes is a connection that records each write.
type writes struct {
	net.Conn
	each [][]byte
}

func (w *writes) SetWriteDeadline(time.Time) error { return nil }

func (w *writes) Write(p []byte) (int, error) {
	w.each = append(w.each, bytes.Clone(p))
	return len(p), nil
}

// TestChunksAreWhatWasWritten checks that the chunks contain what was written, in
// whatever pieces.
func TestChunksAreWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conn := &writes{}
		out := &ChunkWriter{Conn: conn, head: []byte("head")}
		if rapid.Bool().Draw(t, "plain") {
			out.Conn = &netconn.StallTimeoutConn{Conn: conn, Timeout: patienceOfTests}
		}
		var want []byte
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			size := rapid.OneOf(rapid.IntRange(0, 2*gatherSmall), rapid.IntRange(gatherSize-40, 3*gatherSize)).Draw(t, "size")
			p := bytes.Repeat([]byte{byte('a' + len(want)%26)}, size)
			want = append(want, p...)
			out.Write(p)
			if rapid.Bool().Draw(t, "flush") {
				out.Flush()
			}
		}
		out.End()
		all, headed := bytes.CutPrefix(bytes.Join(conn.each, nil), []byte("head"))
		if !headed {
			t.Fatalf("it begins with %.20q", all)
		}
		got, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(all)))
		if err != nil || !bytes.Equal(got, want) || !bytes.HasSuffix(all, []byte(LastChunk)) {
			t.Errorf("%d bytes came of %d, %v", len(got), len(want), err)
		}
		if out.Sent() != len(want) || out.Failure() != nil {
			t.Errorf("%d bytes are counted of %d, %v", out.Sent(), len(want), out.Failure())
		}
	})
}

// TestOneWriteForAFlush checks that small data goes out in one write, and that no
// buffer is held afterwards.
func TestOneWriteForAFlush(t *testing.T) {
	conn := &writes{}
	out := &ChunkWriter{Conn: conn, head: []byte("head\r\n\r\n")}
	for range 3 {
		out.Write([]byte("data: 1\n"))
		out.Write([]byte("\n"))
		out.Flush()
		if out.buffer != nil {
			t.Error("a buffer is held after a flush")
		}
	}
	out.Flush() // nothing to flush
	out.Write([]byte("bye"))
	out.End()
	want := []string{"head\r\n\r\n9\r\ndata: 1\n\n\r\n", "9\r\ndata: 1\n\n\r\n", "9\r\ndata: 1\n\n\r\n", "3\r\nbye\r\n0\r\n\r\n"}
	var got []string
	for _, p := range conn.each {
		got = append(got, string(p))
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// TestEventsAreNotCut checks that data that fits into one chunk is not split.
func TestEventsAreNotCut(t *testing.T) {
	conn := &writes{}
	out := &ChunkWriter{Conn: conn}
	event := bytes.Repeat([]byte("x"), 1000)
	for range 100 {
		out.Write(event)
	}
	out.Flush()
	for _, p := range conn.each {
		if n := bytes.Count(p, []byte("x")); n%len(event) != 0 || n == 0 {
			t.Errorf("a chunk of %d bytes", n)
		}
	}
}

// TestChunksToAClientThatDoesNotRead checks that the first error sticks.
func TestChunksToAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := net.Pipe()
		out := &ChunkWriter{Conn: &netconn.StallTimeoutConn{Conn: near, Timeout: patienceOfTests}}
		out.Write(make([]byte, 2*gatherSize))
		out.End()
		if !out.TimedOut() || !errors.Is(out.Failure(), os.ErrDeadlineExceeded) || out.buffer != nil {
			t.Errorf("timed out %t, error %v, buffer %v", out.TimedOut(), out.Failure(), out.buffer)
		}
	})
}

const patienceOfTests = 10 * time.Second
