package h2

import (
	"bytes"
	"encoding/hex"
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

var update = flag.Bool("update", false, "rewrite the transcript in testdata with the current output")

// transcribed remembers what a client reads.
type transcribed struct {
	io.Reader
	all bytes.Buffer
}

// Read implements io.Reader.
func (r *transcribed) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.all.Write(p[:n])
	return n, err
}

// TestTranscript compares all that is sent over a connection with testdata/connection.txt: settings, an answer, a
// refusal, a detached stream, a body, a PING, a fault, and the end.
func TestTranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/events" {
				st := Detach(w)
				_, _ = io.WriteString(st, "event: hello\n\n")
				_ = st.Finish()
				return
			}
			_, _ = io.Copy(w, r.Body)
		})
		conn, err := r.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		read := &transcribed{Reader: conn}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(io.Discard, read)
		}()
		c := &client{Conn: conn, t: t, Framer: http2.NewFramer(conn, nil)}
		c.encoder = hpack.NewEncoder(&c.fields)
		c.AllowIllegalWrites = true
		step := func(errs ...error) {
			c.must(errs...)
			synctest.Wait()
		}
		step(c.write(http2.ClientPreface), c.WriteSettings())
		c.request(1, "GET", "/events", true)
		step()
		c.request(3, "POST", "/", false)
		step(c.WriteData(3, true, []byte("a body")))
		c.request(5, "CONNECT", "/", true)
		step(c.WritePing(false, [8]byte{1, 2, 3, 4, 5, 6, 7, 8}))
		step(c.WriteWindowUpdate(0, 0))
		time.Sleep(time.Second)
		<-done
		conn.Close()
		compare(t, "testdata/connection.txt", transcript(t, read.all.Bytes()))
	})
}

// transcript returns frames as text: a line that says what each is, and its bytes.
func transcript(t *testing.T, p []byte) string {
	var out strings.Builder
	rest := bytes.NewReader(p)
	f := http2.NewFramer(nil, rest)
	f.ReadMetaHeaders = hpack.NewDecoder(headerTable, nil)
	for rest.Len() > 0 {
		from := len(p) - rest.Len()
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("%v, after\n%s", err, &out)
		}
		out.WriteString(describe(frame) + "\n" + hex.Dump(p[from:len(p)-rest.Len()]))
	}
	return out.String()
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
