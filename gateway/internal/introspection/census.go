package introspection

import (
	"cmp"
	"net/netip"
	"strings"
)

// Kind is what the streams of one group of a census have in common: the first three, or one of the
// others.
type Kind struct {
	Application string
	Network     netip.Prefix
	Transport   string
	Principal   string
	ClientID    string
}

func (k Kind) compare(o Kind) int {
	return cmp.Or(
		strings.Compare(k.Application, o.Application), k.Network.Compare(o.Network), strings.Compare(k.Transport, o.Transport),
		strings.Compare(k.Principal, o.Principal), strings.Compare(k.ClientID, o.ClientID),
	)
}

// Kinds are the properties by which a census counts streams. ByApplication is together with the
// network and the transport.
var Kinds = []Property{ByApplication, ByPrincipal, ByClientID}

func (p Property) kindOf(one *Stream, client *Client) Kind {
	switch p {
	case ByPrincipal:
		return Kind{Principal: client.Text()}
	case ByClientID:
		return Kind{ClientID: client.ClientText()}
	default:
		return Kind{Application: Application(client.UserAgent()), Network: one.Network(), Transport: one.Transport}
	}
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

// TakeCensus counts all streams by one of Kinds. The largest groups are counted apart.
func TakeCensus(all *List, carriers []Carrier, by Property, groups int) *Census {
	var table GroupTable[Kind]
	c := &Census{}
	Walk(all, carriers, func(s *Slice, clients []Client) {
		for i := range s.Streams {
			one := &s.Streams[i]
			c.All.Add(one)
			g := table.Of(by.kindOf(one, &clients[i]))
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
