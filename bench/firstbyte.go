package main

import (
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
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
	f, err := load.Follow(s.address, []byte("GET /v1/events?watch=services HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for range runs {
		took, err := load.FirstBytes(f, 1000, func() (time.Time, error) {
			s.change(1)
			return s.committed, nil
		})
		if err != nil {
			return nil, err
		}
		median.seen = append(median.seen, took[len(took)/2])
		high.seen = append(high.seen, took[len(took)*99/100])
	}
	return []row{median, high}, nil
}
