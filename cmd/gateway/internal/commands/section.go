package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// section is the part of a screen that shows one watch: a line with its
// freshness, and a table. Owned by the screen.
type section struct {
	name    string
	sortKey func(client.Resource) string // nil: the key
	table   *terminal.Table
	rows    []terminal.Row // those that are visible
}

// lines returns at most height lines.
func (s *section) lines(w *followed, width, height int) []string {
	if height < 1 {
		return nil
	}
	head := terminal.Line(s.status(w, time.Now()), width)
	if height < 3 {
		return []string{head}
	}
	room := height - 2 // status and header
	total := s.take(w.replica, room)
	rows, below := s.rows, ""
	if total > len(rows) {
		rows = rows[:max(0, min(len(rows), room-1))]
		below = fmt.Sprintf("… %d more", total-len(rows))
	}
	out := append([]string{head}, s.table.Draw(rows, width)...)
	if below != "" {
		out = append(out, below)
	}
	return out
}

// take takes the first rows, and returns how many there are.
func (s *section) take(r *client.Replica[client.Resource], room int) (total int) {
	s.rows = s.rows[:0]
	if s.sortKey != nil {
		return s.takeSorted(r, room)
	}
	for _, u := range r.All() {
		if total++; total <= room {
			s.rows = append(s.rows, terminal.Row{Key: u.Key, Value: u.Value})
		}
	}
	return total
}

// takeSorted is take for a window, which has few resources.
func (s *section) takeSorted(r *client.Replica[client.Resource], room int) (total int) {
	type item struct {
		sortKey string
		row     terminal.Row
	}
	var items []item
	for _, u := range r.All() {
		items = append(items, item{s.sortKey(u), terminal.Row{Key: u.Key, Value: u.Value}})
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.sortKey, b.sortKey) })
	for _, i := range items[:min(room, len(items))] {
		s.rows = append(s.rows, i.row)
	}
	return len(items)
}

// status returns for instance: services  in_sync  revision 1042  17 resources  verified 12:03:04.
// A window is so many of all: 20 of 1,234 resources.
func (s *section) status(w *followed, now time.Time) string {
	r := w.replica
	fresh, progress := r.Freshness(), r.Progress()
	parts := []string{s.name, string(fresh.State)}
	if !fresh.Since.IsZero() {
		parts = append(parts, "for "+now.Sub(fresh.Since).Round(time.Second).String())
	}
	if r.Revision() != "" {
		parts = append(parts, "revision "+r.Revision())
	}
	switch {
	case !progress.Complete:
		parts = append(parts, fmt.Sprintf("loading, %d so far", progress.Arrived))
	case s.sortKey != nil:
		parts = append(parts, fmt.Sprintf("%d of %s resources", r.Len(), grouped(w.total.Load())))
	default:
		parts = append(parts, count(r.Len(), "resource", "resources"))
	}
	if at := r.Verified(); !at.IsZero() {
		parts = append(parts, "verified "+at.Format(time.TimeOnly))
	}
	if fresh.Reason != "" {
		parts = append(parts, fresh.Reason)
	}
	return strings.Join(parts, "  ")
}

// grouped returns a number with commas: 1,234,567.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
