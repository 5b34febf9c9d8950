package subscribers

import (
	"cmp"
	"net/netip"
	"strings"
)

// Kind is what the streams of one group of a census have in common.
type Kind struct {
	Application string
	Network     netip.Prefix
	Transport   string
}

func (k Kind) compare(o Kind) int {
	return cmp.Or(strings.Compare(k.Application, o.Application), k.Network.Compare(o.Network), strings.Compare(k.Transport, o.Transport))
}

// Census counts all streams in groups, and what they follow.
//
// Owned by the caller.
type Census struct {
	All    Group
	Groups []Keyed[Kind] // the largest, in order
	Others Group
	Left   int // how many groups are counted in Others
}

// TakeCensus counts all streams. The largest groups are counted apart.
func TakeCensus(all *List, carriers []Carrier, groups int) *Census {
	var table GroupTable[Kind]
	c := &Census{}
	Walk(all, carriers, func(s *Slice, agents []string) {
		for i := range s.Streams {
			one := &s.Streams[i]
			c.All.Add(one)
			g := table.Of(Kind{Application(agents[i]), one.Network(), one.Transport})
			g.Add(one)
			for _, f := range s.Follows(one) {
				g.Follow(f, 1)
			}
		}
	})
	c.Groups = table.Largest(groups, Kind.compare)
	c.Others, c.Left = table.Others, table.Left
	return c
}
