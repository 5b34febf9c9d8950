package commands

import (
	"fmt"
	"strings"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// section is the part of a screen that shows one watch: a line with its
// freshness, and a table. Owned by the screen.
type section struct {
	name  string
	table *terminal.Table
	rows  []terminal.Row // of the last consistent state
	total int
}

// lines returns at most height lines.
func (s *section) lines(r *client.Replica, width, height int) []string {
	if height < 1 {
		return nil
	}
	head := terminal.Line(s.status(r, time.Now()), width)
	if height < 3 {
		return []string{head}
	}
	room := height - 2 // status and header
	if r.Consistent() {
		s.take(r, room)
	}
	rows, below := s.rows[:min(len(s.rows), room)], ""
	if s.total > len(rows) {
		rows = rows[:max(0, min(len(rows), room-1))]
		below = fmt.Sprintf("… %d more", s.total-len(rows))
	}
	out := append([]string{head}, s.table.Draw(rows, width)...)
	if below != "" {
		out = append(out, below)
	}
	return out
}

// take stores the first rows, since the next rows may be half a snapshot.
func (s *section) take(r *client.Replica, room int) {
	ids := r.IDs()
	s.rows, s.total = s.rows[:0], len(ids)
	for _, id := range ids[:min(len(ids), room)] {
		u, _ := r.Resource(id)
		s.rows = append(s.rows, terminal.Row{Key: u.Key, Value: u.Value})
	}
}

// status returns for instance: services  in_sync  revision 1042  17 resources.
func (s *section) status(r *client.Replica, now time.Time) string {
	state, since, reason := r.State()
	parts := []string{s.name, state}
	if !since.IsZero() {
		parts = append(parts, "for "+now.Sub(since).Round(time.Second).String())
	}
	if r.Revision() != "" {
		parts = append(parts, "revision "+r.Revision())
	}
	if !r.Synced() {
		parts = append(parts, fmt.Sprintf("loading, %d so far", r.Count()))
	} else {
		parts = append(parts, count(s.count(r), "resource", "resources"))
	}
	if reason != "" {
		parts = append(parts, reason)
	}
	return strings.Join(parts, "  ")
}

// count is that of the last consistent state.
func (s *section) count(r *client.Replica) int {
	if r.Consistent() {
		return r.Count()
	}
	return s.total
}
