package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// measureFirstByte measures how long after a commit its only subscriber has read
// the first byte, over loopback. Commits are a millisecond apart, so that all
// goroutines are asleep when one comes.
func measureFirstByte(runs int) ([]row, error) {
	median := row{what: "µs from a commit to its first byte at the only subscriber, median", target: "≤ 50", format: "%.0f", ok: atMost(50)}
	high := row{what: "the same, 99th percentile", target: "–", format: "%.0f"}
	s, err := serve(keys(1000))
	if err != nil {
		return nil, err
	}
	defer s.close()
	f, err := s.subscribe()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for range runs {
		took, err := s.firstBytes(f, 1000)
		if err != nil {
			return nil, err
		}
		median.seen = append(median.seen, took[len(took)/2])
		high.seen = append(high.seen, took[len(took)*99/100])
	}
	return []row{median, high}, nil
}

// subscribe returns a stream whose snapshot was read. Its reads block in the
// system, so that Go's poller does not affect the measurement.
func (s *server) subscribe() (*os.File, error) {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "GET /v1/events?watch=services HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		// The id ends the event; the rest of this read, an empty line and the end
		// of a chunk, came with it and is read by then.
		if strings.HasPrefix(lines.Text(), "id: ") && !strings.Contains(lines.Text(), "/") {
			return c.(*net.TCPConn).File()
		}
	}
	return nil, fmt.Errorf("no end of the snapshot from %s", s.address)
}

// firstBytes commits n changes, and returns in microseconds, sorted, how long each
// took.
func (s *server) firstBytes(f *os.File, n int) ([]float64, error) {
	arrived, failed := make(chan time.Time), make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		for range n {
			if _, err := f.Read(buf); err != nil {
				failed <- err
				return
			}
			arrived <- time.Now()
		}
	}()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	took := make([]float64, 0, n)
	for range n {
		<-ticker.C
		s.change(1)
		select {
		case at := <-arrived:
			took = append(took, float64(at.Sub(s.committed).Nanoseconds())/1000)
		case err := <-failed:
			return nil, err
		}
	}
	slices.Sort(took)
	return took, nil
}
