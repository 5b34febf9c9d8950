package gateway

import (
	"net/netip"
	"strconv"
	"time"
)

// identity says whose stream one is, for readers of the list of subscribers. It has
// no pointers: tables hold very many of them.
type identity struct {
	stamp int64 // when the stream began, see nanosOf; unique
	origin
}

// origin says where a stream comes from.
type origin struct {
	address [16]byte // all zero: unknown
	port    uint16   // 0: unknown
	agent   int32    // number of the user agent, counted from 1; 0: not named
}

func originOf(from netip.AddrPort) (o origin) {
	if from.Addr().IsValid() {
		o.address, o.port = from.Addr().As16(), from.Port()
	}
	return o
}

// id names the stream within this process.
func (i identity) id() string { return strconv.FormatInt(i.stamp, 36) }

// since returns when the stream began, by the current wall clock. Slewing since then
// is ignored, so that the same time is shown whenever it is asked for.
func (i identity) since(now time.Time) time.Time {
	set := now.Round(0).Sub(timeOf(nanosOf(now)).Round(0))
	if set.Abs() < time.Second {
		set = 0
	}
	return timeOf(i.stamp).Add(set)
}

// from returns the address, with the port if it is known, or "" if there is none.
func (o origin) from() string {
	switch a := netip.AddrFrom16(o.address).Unmap(); {
	case o.address == [16]byte{}:
		return ""
	case o.port == 0:
		return a.String()
	default:
		return netip.AddrPortFrom(a, o.port).String()
	}
}

// delivered counts what a stream was sent so far.
type delivered struct {
	events  uint64
	bytes   uint64 // of events
	skipped uint64 // changes that it did not see one by one
}

// plus may wrap, as minus may: what a member of a group was sent is what the group
// was sent plus a constant difference.
func (d delivered) plus(o delivered) delivered {
	return delivered{d.events + o.events, d.bytes + o.bytes, d.skipped + o.skipped}
}

func (d delivered) minus(o delivered) delivered {
	return delivered{d.events - o.events, d.bytes - o.bytes, d.skipped - o.skipped}
}
