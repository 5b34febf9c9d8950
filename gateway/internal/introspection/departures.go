package introspection

import (
	"maps"
	"time"
)

// departureMinutes is for how many minutes departures are counted by the minute.
const departureMinutes = 60

// minutes counts departures by minute and reason. It has no more reasons than there are.
//
// Owned by the holder of the lock of its list.
type minutes struct {
	counts [departureMinutes]map[DepartureReason]uint64
	newest int64 // the newest minute, since 1970
}

func (m *minutes) add(at time.Time, why DepartureReason) {
	m.turn(at)
	slot := &m.counts[m.newest%departureMinutes]
	if *slot == nil {
		*slot = map[DepartureReason]uint64{}
	}
	(*slot)[why]++
}

// turn forgets the minutes that are too old.
func (m *minutes) turn(at time.Time) {
	now := at.Unix() / 60
	for m.newest = max(m.newest, now-departureMinutes); m.newest < now; {
		m.newest++
		clear(m.counts[m.newest%departureMinutes])
	}
}

// DepartureMinute is how many streams ended in one minute, by reason.
type DepartureMinute struct {
	Minute  time.Time                  `json:"minute"`
	Reasons map[DepartureReason]uint64 `json:"reasons"`
}

// DepartureMinutes returns the minutes of the last hour in which streams ended, the oldest first.
func (s *List) DepartureMinutes() []DepartureMinute {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.minutes
	m.turn(time.Now())
	out := []DepartureMinute{}
	for minute := max(m.newest-departureMinutes+1, 0); minute <= m.newest; minute++ {
		if counts := m.counts[minute%departureMinutes]; len(counts) > 0 {
			out = append(out, DepartureMinute{time.Unix(minute*60, 0).UTC(), maps.Clone(counts)})
		}
	}
	return out
}
