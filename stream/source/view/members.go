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

// hold reports the memory of the members, which counts until Watch returns.
func (s *Source) hold(sink stream.Sink) {
	if more := s.members.bytes - s.held; more != 0 {
		stream.Hold(sink, more)
		s.held = s.members.bytes
	}
}
