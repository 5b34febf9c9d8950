package introspection

import (
	"slices"
)

// Slice is what a carrier reports at once about its streams. It is filled again and again, so
// that a walk over very many streams allocates little.
//
// Owned by the caller of Walk; by a carrier while it reports.
type Slice struct {
	Streams  []Stream
	followed []Followed // of all of them, see Stream.Follows
	clients  []Client   // of all of them; see List.name
}

// NewSlice returns an empty slice, with room enough that carriers need not make any.
func NewSlice() *Slice {
	return &Slice{
		Streams: make([]Stream, 0, ReportedAtOnce), followed: make([]Followed, 0, ReportedAtOnce),
		clients: make([]Client, 0, ReportedAtOnce),
	}
}

// Stream is what a walk sees of one stream.
type Stream struct {
	Identity
	Delivered
	Lag       uint64
	Transport string
	Key       uint64 // of the stream, for its carrier

	first, end int32 // of its watches in the slice
	carrier    Carrier
	progress   *PublishedProgress // nil: it has a carrier
}

// Follow adds to the watches that the next streams follow, and returns its place, for Add.
func (s *Slice) Follow(f ...Followed) (first, end int32) {
	first = int32(len(s.followed))
	s.followed = append(s.followed, f...)
	return first, int32(len(s.followed))
}

// Add adds a stream that follows the watches from first to end.
func (s *Slice) Add(one Stream, first, end int32) {
	one.first, one.end = first, end
	s.Streams = append(s.Streams, one)
}

// Follows returns the watches of a stream, and which part of each it follows.
func (s *Slice) Follows(one *Stream) []Followed { return s.followed[one.first:one.end] }

// Wanted reports whether a stream follows a watch, or any if it has no name.
func (s *Slice) Wanted(one *Stream, watch string) bool {
	return watch == "" || slices.ContainsFunc(s.Follows(one), func(f Followed) bool { return f.Watch == watch })
}

// Clear makes the slice empty, to be filled again.
func (s *Slice) Clear() {
	clear(s.followed)
	clear(s.Streams)
	clear(s.clients)
	s.Streams, s.followed = s.Streams[:0], s.followed[:0]
}

// Walk shows all streams in slices: those with their own goroutine, and those of the carriers.
// visit is called with the clients of a slice's streams, in their order.
func Walk(all *List, carriers []Carrier, visit func(s *Slice, clients []Client)) {
	s := NewSlice()
	for some := range slices.Chunk(all.Standalone(), ReportedAtOnce) {
		s.Clear()
		for _, one := range some {
			one.report(s)
		}
		visit(s, all.name(s))
	}
	for _, c := range carriers {
		for from := int32(0); from >= 0; {
			s.Clear()
			from = c.Report(s, from)
			for i := range s.Streams {
				s.Streams[i].carrier = c
			}
			visit(s, all.name(s))
		}
	}
}

// name returns the clients of the streams of a slice. One that has ended meanwhile may have
// none, or that of a later stream.
func (s *List) name(of *Slice) []Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.clients = of.clients[:0]
	for i := range of.Streams {
		var c Client
		if n := of.Streams[i].client; n != 0 {
			c = s.Clients.Find(n - 1)
		}
		of.clients = append(of.clients, c)
	}
	return of.clients
}

// report adds the stream to a slice.
func (s *PublishedProgress) report(out *Slice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := Stream{Identity: s.who, Delivered: s.delivered, Transport: s.transport, progress: s}
	for i := range s.progress {
		one.Lag += s.progress[i].Lag()
	}
	first, end := out.Follow(s.followed...)
	out.Add(one, first, end)
}
