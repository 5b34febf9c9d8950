package gateway

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
)

// subscriber is one open stream, as GET /v1/subscribers shows it.
type subscriber struct {
	ID         string    `json:"id"`
	Address    string    `json:"address,omitempty"`
	UserAgent  string    `json:"user_agent,omitempty"`
	Transport  string    `json:"transport"`
	Encoding   string    `json:"encoding"`
	Since      time.Time `json:"since"`
	Watches    []string  `json:"watches"`
	Position   string    `json:"position,omitempty"`
	Events     uint64    `json:"events"`
	Bytes      uint64    `json:"bytes"`
	Lag        uint64    `json:"lag"`
	Skipped    uint64    `json:"skipped"`
	CatchingUp bool      `json:"catching_up"`
}

func (s *subscriber) identify(who identity) {
	s.ID, s.Address, s.Since = who.id(), who.from(), instant(who.since(time.Now()))
}

func (s *subscriber) count(d delivered) {
	s.Events, s.Bytes, s.Skipped = d.events, d.bytes, d.skipped
}

// follow adds one watch of the stream.
func (s *subscriber) follow(watch string, p log.Progress) {
	s.Watches = append(s.Watches, watch)
	s.Lag += p.Lag()
	s.CatchingUp = s.CatchingUp || p.CatchingUp
	if p.Position == (stream.Position{}) {
		return // nothing of it was delivered
	}
	if s.Position != "" {
		s.Position += ","
	}
	s.Position += p.Position.String()
}

func (s *subscriber) watches(name string) bool {
	return name == "" || slices.Contains(s.Watches, name)
}

// encodingName returns the encoding of a stream: "gzip", or "" for none.
func encodingName(gzip bool) string {
	if gzip {
		return "gzip"
	}
	return ""
}

// instant returns a time as the API shows it.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// departure is a stream that has ended.
type departure struct {
	subscriber
	Left   time.Time       `json:"left"`
	Reason departureReason `json:"reason"`
}

// departureReason is why a stream ended: a stream.GoodbyeReason or, if there was no
// goodbye, one of the following.
type departureReason string

const (
	leftByItself   departureReason = "client_closed" // the client hung up
	leftUnread     departureReason = "write_timeout" // the client did not read
	leftByAccident departureReason = "aborted"       // the gateway closed it abruptly
)
