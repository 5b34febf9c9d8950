package host

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	psnet "github.com/shirou/gopsutil/v4/net"
)

// networkInterface is the value of one network interface.
type networkInterface struct {
	Name            string   `json:"name"`
	Index           int      `json:"index,omitempty"`
	MTU             int      `json:"mtu,omitempty"` // bytes
	HardwareAddress string   `json:"hardware_address,omitempty"`
	Flags           []string `json:"flags,omitempty"` // up, broadcast, loopback, pointtopoint, multicast, running

	ReceivedBytes   uint64 `json:"received_bytes"`
	ReceivedPackets uint64 `json:"received_packets"`
	ReceivedErrors  uint64 `json:"received_errors"`
	ReceivedDropped uint64 `json:"received_dropped"`
	SentBytes       uint64 `json:"sent_bytes"`
	SentPackets     uint64 `json:"sent_packets"`
	SentErrors      uint64 `json:"sent_errors"`
	SentDropped     uint64 `json:"sent_dropped"`
}

// interfaceReader lists the interfaces for which the operating system has counters.
type interfaceReader struct{}

func (interfaceReader) read(ctx context.Context) ([]item, error) {
	counters, err := psnet.IOCountersWithContext(onThisMachine(ctx), true)
	if err != nil {
		return nil, fmt.Errorf("list the counters of network interfaces: %w", err)
	}
	// Not gopsutil's Interfaces: it requests the addresses of each interface
	// separately, and each answer holds those of all.
	properties, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	return interfaceItems(counters, properties)
}

// interfaceItems joins both lists by name. An interface that appeared or
// vanished between them has only counters, or is not shown.
func interfaceItems(counters []psnet.IOCountersStat, properties []net.Interface) ([]item, error) {
	byName := make(map[string]net.Interface, len(properties))
	for _, p := range properties {
		byName[p.Name] = p
	}
	items := make([]item, 0, len(counters))
	for _, c := range counters {
		value, err := encode(interfaceValue(c, byName[c.Name]))
		if err != nil {
			return nil, err
		}
		items = append(items, item{key: c.Name, value: value})
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.key, b.key) })
	return items, nil
}

func interfaceValue(c psnet.IOCountersStat, p net.Interface) networkInterface {
	v := networkInterface{
		Name: c.Name, Index: p.Index, MTU: p.MTU, HardwareAddress: p.HardwareAddr.String(),
		ReceivedBytes: c.BytesRecv, ReceivedPackets: c.PacketsRecv,
		ReceivedErrors: c.Errin, ReceivedDropped: c.Dropin,
		SentBytes: c.BytesSent, SentPackets: c.PacketsSent,
		SentErrors: c.Errout, SentDropped: c.Dropout,
	}
	if p.Flags != 0 {
		v.Flags = strings.Split(p.Flags.String(), "|")
	}
	return v
}
