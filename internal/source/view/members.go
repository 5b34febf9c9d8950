package view

import "github.com/watchtide/watchtide/stream"

// members are the keys of the view.
type members struct {
	keys  map[string]struct{}
	bytes int64
}

// memberCost is how many bytes a member takes besides its key.
const memberCost = 32

func newMembers(n int) members { return members{keys: make(map[string]struct{}, n)} }

func (m *members) has(key string) bool {
	_, in := m.keys[key]
	return in
}

func (m *members) set(key string, in bool) {
	switch {
	case in == m.has(key):
	case in:
		m.keys[key] = struct{}{}
		m.bytes += memberCost + int64(len(key))
	default:
		delete(m.keys, key)
		m.bytes -= memberCost + int64(len(key))
	}
}

// holdStep is how much the memory may differ from what was reported: each key is a few
// bytes, and a report takes a lock.
const holdStep = 16 << 10

// hold reports the memory of the members and of what is staged. It counts until Watch
// returns.
func (s *Source) hold(sink stream.Sink, staged int64) {
	more := s.members.bytes + staged - s.held
	if more == 0 || staged > 0 && more < holdStep {
		return
	}
	sink.Charge(more)
	s.held += more
}
