package introspection

import (
	"net/netip"
	"strconv"
	"time"
)

// Identity identifies a stream for readers of the list of subscribers. It has no
// pointers: tables hold very many of them.
type Identity struct {
	Stamp int64 // when the stream began, see Nanos; unique
	Origin
}

// Origin is the origin of a stream.
type Origin struct {
	address [16]byte // all zero: unknown
	port    uint16   // 0: unknown
	client  int32    // number of the Client, counted from 1; 0: nothing is known of it
}

func originOf(from netip.AddrPort) (o Origin) {
	if from.Addr().IsValid() {
		o.address, o.port = from.Addr().As16(), from.Port()
	}
	return o
}

// id names the stream within this process.
func (i Identity) id() string { return strconv.FormatInt(i.Stamp, 36) }

// since returns when the stream began, by the current wall clock. Slewing since then
// is ignored, so that the same time is shown whenever it is asked for.
func (i Identity) since(now time.Time) time.Time {
	set := now.Round(0).Sub(FromNanos(Nanos(now)).Round(0))
	if set.Abs() < time.Second {
		set = 0
	}
	return FromNanos(i.Stamp).Add(set)
}

// from returns the address, with the port if it is known, or "" if there is none.
func (o Origin) from() string { return string(o.append(nil)) }

func (o Origin) append(dst []byte) []byte {
	switch a := netip.AddrFrom16(o.address).Unmap(); {
	case o.address == [16]byte{}:
		return dst
	case o.port == 0:
		return a.AppendTo(dst)
	default:
		return netip.AddrPortFrom(a, o.port).AppendTo(dst)
	}
}

// Delivered counts the data sent to a stream so far.
type Delivered struct {
	Events  uint64
	Bytes   uint64 // of events
	Skipped uint64 // changes that it did not see one by one
}

// Plus may wrap, as Minus may: the counts of a member are those of its group plus
// a constant difference.
func (d Delivered) Plus(o Delivered) Delivered {
	return Delivered{d.Events + o.Events, d.Bytes + o.Bytes, d.Skipped + o.Skipped}
}

// Minus is the inverse of Plus.
func (d Delivered) Minus(o Delivered) Delivered {
	return Delivered{d.Events - o.Events, d.Bytes - o.Bytes, d.Skipped - o.Skipped}
}
