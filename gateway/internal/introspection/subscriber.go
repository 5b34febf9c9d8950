package introspection

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// Subscriber is one open stream, as GET /v1/subscribers shows it.
type Subscriber struct {
	ID         string    `json:"id"`
	Address    string    `json:"address,omitempty"`
	UserAgent  string    `json:"user_agent,omitempty"`
	Principal  Principal `json:"principal,omitzero"`
	Transport  string    `json:"transport"`
	Encoding   string    `json:"encoding"`
	Since      time.Time `json:"since"`
	Watches    []string  `json:"watches"`
	Views      []View    `json:"views,omitempty"` // of the watches that it follows in part
	Position   string    `json:"position,omitempty"`
	Events     uint64    `json:"events"`
	Bytes      uint64    `json:"bytes"`
	Lag        uint64    `json:"lag"`
	Skipped    uint64    `json:"skipped"`
	CatchingUp bool      `json:"catching_up"`
}

// OfClient fills in the client of the stream.
func (s *Subscriber) OfClient(c Client) { s.UserAgent, s.Principal = c.UserAgent(), c.Principal }

// Identify fills in the origin of the stream.
func (s *Subscriber) Identify(who Identity) {
	s.ID, s.Address, s.Since = who.id(), who.from(), Instant(who.since(time.Now()))
}

// Count fills in the amount sent to the stream.
func (s *Subscriber) Count(d Delivered) {
	s.Events, s.Bytes, s.Skipped = d.Events, d.Bytes, d.Skipped
}

// Follow adds one watch of the stream.
func (s *Subscriber) Follow(f Followed, p log.Progress) {
	s.Watches = append(s.Watches, f.Watch)
	if f.View != (ViewRef{}) {
		s.Views = append(s.Views, f.View.View())
	}
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

func (s *Subscriber) watches(name string) bool {
	return name == "" || slices.Contains(s.Watches, name)
}

// Instant returns a time as the API shows it.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Departure is a stream that has ended.
type Departure struct {
	Subscriber
	Left   time.Time       `json:"left"`
	Reason DepartureReason `json:"reason"`
}

// DepartureReason is why a stream ended: a stream.GoodbyeReason or, if there was no
// goodbye, one of the following.
type DepartureReason string

const (
	LeftByItself   DepartureReason = "client_closed" // the client hung up
	LeftUnread     DepartureReason = "write_timeout" // the client did not read
	LeftByAccident DepartureReason = "aborted"       // the gateway closed it abruptly
)
