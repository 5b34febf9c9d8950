package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// measureCurl measures the gateway over loopback, with curl as the client:
// 100,000 × 300 bytes from the request to end_of_snapshot, and a resume after 100
// changes among them.
func measureCurl(runs int) ([]row, error) {
	took := row{what: "s from request to end_of_snapshot, 100,000 × 300 B, one curl", target: "≤ 0.25", format: "%.3f", ok: atMost(0.25)}
	events := row{what: "changes sent to a curl that resumes after 100 changes", target: "= 100", format: "%.0f", ok: func(n float64) bool { return n == 100 }}
	if _, err := exec.LookPath("curl"); err != nil {
		return nil, fmt.Errorf("curl is needed: %w", err)
	}
	s, err := serve(keys(100_000))
	if err != nil {
		return nil, err
	}
	defer s.close()
	for range runs {
		start := time.Now()
		out, err := s.curl("")
		if err != nil {
			return nil, err
		}
		took.seen = append(took.seen, time.Since(start).Seconds())
		if n := bytes.Count(out, []byte("event: upsert")); n != 100_000 {
			return nil, fmt.Errorf("the snapshot has %d upserts", n)
		}
		position := lastID(out)
		s.change(100)
		if out, err = s.curl(position); err != nil {
			return nil, err
		}
		events.seen = append(events.seen, float64(bytes.Count(out, []byte("event: upsert"))))
	}
	return []row{took, events}, nil
}

// server is a gateway on loopback whose only watch is fed by the bench.
type server struct {
	address string
	commits chan []stream.Resource
	done    chan uint64
	names   []string
	at      int
	// committed is when the last change was handed to the watch; valid after a
	// receive from done.
	committed time.Time
	stop      context.CancelFunc
	ended     chan error
	watches   *watch.Registry
}

func serve(names []string) (*server, error) {
	s := &server{
		names: names, commits: make(chan []stream.Resource), done: make(chan uint64),
		ended: make(chan error, 1), watches: watch.NewRegistry(),
	}
	w, err := s.watches.Add(watch.Config{Name: "services", SourceName: "bench", Source: stream.SourceFunc(s.source)})
	if err != nil {
		return nil, err
	}
	g, err := gateway.New(gateway.Config{Registry: s.watches, StreamSettings: gateway.StreamSettings{DrainDelay: -1, Drain: -1}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() { s.ended <- g.Serve(ctx, gateway.Listeners{HTTP: listener}) }()
	return s, w.Prime(ctx)
}

// source sends a snapshot, then the events that it receives from change.
func (s *server) source(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	revision := uint64(0)
	send := func(r stream.Resource) error {
		revision++
		r.Revision, r.Value = revision, value
		return sink.Upsert(r)
	}
	if err := sink.Reset("bench"); err != nil {
		return err
	}
	for _, k := range s.names {
		if err := send(stream.Resource{Key: k}); err != nil {
			return err
		}
	}
	if err := sink.Commit(revision); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case changes := <-s.commits:
			for _, r := range changes {
				if err := send(r); err != nil {
					return err
				}
				s.committed = time.Now()
				if err := sink.Commit(revision); err != nil {
					return err
				}
			}
			s.done <- revision
		}
	}
}

func (s *server) change(n int) {
	changes := make([]stream.Resource, n)
	for i := range changes {
		s.at = (s.at + 991) % len(s.names)
		changes[i].Key = s.names[s.at]
	}
	s.commits <- changes
	<-s.done
}

func (s *server) curl(position string) ([]byte, error) {
	url := "http://" + s.address + "/v1/events?watch=services&until=end_of_snapshot"
	cmd := exec.Command("curl", "-sSN", "--fail", "-H", "Last-Event-ID: "+position, url)
	var out bytes.Buffer
	cmd.Stdout = io.Writer(&out)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("curl %s: %w", url, err)
	}
	return out.Bytes(), nil
}

func lastID(out []byte) string {
	at := bytes.LastIndex(out, []byte("\nid: "))
	id, _, _ := strings.Cut(string(out[at+5:]), "\n")
	return id
}

func (s *server) close() {
	s.stop()
	<-s.ended
	s.watches.Close()
}
