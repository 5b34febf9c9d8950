package doctor

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/watchtide/watchtide/client"
)

const (
	// nothing is a prefix that no key has: a stream with it is silent but for heartbeats.
	nothing = "watchtide-doctor/no-such-key/"
	// maxStream is the most bytes that are read of a stream.
	maxStream = 1 << 20
)

// events returns the path of the streams of the watch.
func (e *Examination) events() string { return e.ofWatch("events") }

func (e *Examination) ofWatch(what string) string {
	return listPath + "/" + url.PathEscape(e.watch.Name) + "/" + what
}

// ask specifies a stream.
type ask struct {
	encoding string // Accept-Encoding
	lastID   string
	until    bool // the stream ends with the snapshot
}

// stream is the answer to a request for a stream without resources.
//
// Owned by the goroutine that reads it.
type stream struct {
	*answer
	lines  *bufio.Reader
	system byte // that compressed it, in the header of gzip
}

// gatewaySystem is the system that the gateway names in the header of gzip: unknown. Most
// proxies name their own (RFC 1952, section 2.3.1).
const gatewaySystem = 255

// open requests a stream over a connection of its own, as an EventSource does. Any goroutine
// may call it.
func (e *Examination) open(ctx context.Context, s ask) (*stream, error) {
	query := url.Values{"prefix": {nothing}}
	if s.until {
		query.Set("until", "end_of_snapshot")
	}
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}, "Accept-Encoding": {s.encoding}}
	if s.lastID != "" {
		header.Set("Last-Event-ID", s.lastID)
	}
	a, err := e.do(ctx, request{path: e.events(), query: query, header: header, fresh: true})
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusOK {
		defer a.Close()
		return nil, client.ReadProblem(a.Response)
	}
	if kind := a.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		a.Close()
		return nil, fmt.Errorf("the answer is of the type %s, want text/event-stream", shortened(kind))
	}
	return &stream{answer: a}, nil
}

// errCoding says that the body cannot be read.
var errCoding = errors.New("the stream has a coding that was not asked for")

// next returns the next line, without its end.
func (s *stream) next() (string, error) {
	if s.lines == nil {
		if err := s.decode(); err != nil {
			return "", err
		}
	}
	line, err := s.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errors.New("a line of the stream is too long")
	}
	return strings.TrimRight(string(line), "\r\n"), err
}

// decode prepares the body for reading. It waits for the first bytes if it is compressed.
func (s *stream) decode() error {
	body := io.Reader(s.Body)
	switch s.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body, s.system = unzipped, unzipped.OS
	default:
		return errCoding
	}
	s.lines = bufio.NewReaderSize(io.LimitReader(body, maxStream), maxLine)
	return nil
}

// maxLine is more than the longest line of a stream without resources.
const maxLine = 16 << 10

// event is what matters of one event.
type event struct {
	Type      string `json:"type"`
	Instance  string `json:"instance"`
	Heartbeat int64  `json:"heartbeat_ms"`
	Reason    string `json:"reason"`
	Resumed   bool   `json:"resumed"`
	Watches   []struct {
		Mode string `json:"mode"`
	} `json:"watches"`
}

// eventIn returns the event whose data is in a line. false: there is none.
func eventIn(line string) (e event, ok bool) {
	data, isData := strings.CutPrefix(line, "data:")
	return e, isData && json.Unmarshal([]byte(data), &e) == nil && e.Type != ""
}

// until reads to the first event of a type, or of the stream's end.
func (s *stream) until(kind string) (event, error) {
	for {
		line, err := s.next()
		if e, ok := eventIn(line); ok && e.Type == kind {
			return e, nil
		} else if ok && e.Type == "goodbye" {
			return e, fmt.Errorf("the gateway said goodbye (%s)", shortened(e.Reason))
		}
		if err != nil {
			return event{}, err
		}
	}
}

// greeting is the beginning of a stream.
type greeting struct {
	stream *stream // nil: there was no header within helloWithin
	hello  event
	header time.Duration // after the request
	took   time.Duration // from the request to hello
	late   bool          // hello did not come within helloWithin
	err    error         // hello did not come, for another reason
	cancel context.CancelFunc
}

// close ends the stream.
func (g *greeting) close() {
	g.cancel()
	if g.stream != nil {
		g.stream.Close()
	}
}

// coding returns how the stream is compressed.
func (g *greeting) coding() string {
	if g.stream == nil {
		return ""
	}
	return g.stream.Header.Get("Content-Encoding")
}

// helloWithin is how long hello is waited for. The gateway sends it at once.
const helloWithin = 10 * time.Second

// greet opens a stream and waits for hello.
func (e *Examination) greet(ctx context.Context, s ask) *greeting {
	ctx, stop := context.WithCancelCause(ctx)
	timer := time.AfterFunc(helloWithin, func() { stop(errLate) })
	defer timer.Stop()
	g := &greeting{cancel: func() { stop(nil) }}
	opened, err := e.open(ctx, s)
	if err == nil {
		g.stream, g.header = opened, opened.begun.Sub(opened.sent)
		g.hello, err = opened.until("hello")
		g.took = time.Since(opened.sent)
	}
	g.late = errors.Is(context.Cause(ctx), errLate)
	if !g.late {
		g.err = err
	}
	return g
}

var errLate = errors.New("hello is late")

// slow reports whether hello took much longer than a round trip: something held it back.
func (e *Examination) slow(g *greeting) bool {
	return g.late || g.took > time.Second+4*e.clock.roundTrip
}
