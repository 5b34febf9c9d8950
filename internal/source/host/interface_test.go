package host

import (
	"net"
	"testing"

	psnet "github.com/shirou/gopsutil/v4/net"
)

func TestInterfaceValue(t *testing.T) {
	counters := []psnet.IOCountersStat{
		{Name: "tun0"},
		{
			Name: "eth0", BytesRecv: 1, PacketsRecv: 2, Errin: 3, Dropin: 4,
			BytesSent: 1<<64 - 1, PacketsSent: 6, Errout: 7, Dropout: 8,
		},
	}
	properties := []net.Interface{
		{Index: 3, Name: "went"},
		{
			Index: 2, MTU: 1500, Name: "eth0", Flags: net.FlagUp | net.FlagBroadcast,
			HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1},
		},
	}
	items, err := interfaceItems(counters, properties)
	if err != nil {
		t.Fatal(err)
	}
	want := []item{
		{"eth0", []byte(`{"name":"eth0","index":2,"mtu":1500,"hardware_address":"02:00:00:00:00:01","flags":["up","broadcast"],` +
			`"received_bytes":1,"received_packets":2,"received_errors":3,"received_dropped":4,` +
			`"sent_bytes":18446744073709551615,"sent_packets":6,"sent_errors":7,"sent_dropped":8}`)},
		{"tun0", []byte(`{"name":"tun0",` +
			`"received_bytes":0,"received_packets":0,"received_errors":0,"received_dropped":0,` +
			`"sent_bytes":0,"sent_packets":0,"sent_errors":0,"sent_dropped":0}`)},
	}
	wantItems(t, items, want)
}

func wantItems(t *testing.T, got, want []item) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d items, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i].key != want[i].key || string(got[i].value) != string(want[i].value) {
			t.Errorf("item %d:\n got %s %s\nwant %s %s", i, got[i].key, got[i].value, want[i].key, want[i].value)
		}
	}
}

// TestLoopbackIsCounted sends something to itself and checks that it is counted.
func TestLoopbackIsCounted(t *testing.T) {
	loopback := loopbackName(t)
	before := fieldsOf(t, snapshotOf(t, Interfaces)[loopback])
	talkToMyself(t, 1000)
	after := fieldsOf(t, snapshotOf(t, Interfaces)[loopback])
	for _, counter := range []string{"received_bytes", "sent_bytes"} {
		if grew := after[counter].(float64) - before[counter].(float64); grew < 1000 {
			t.Errorf("%s of %s grew by %.0f, want 1000 or more", counter, loopback, grew)
		}
	}
}

func loopbackName(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	t.Skip("no loopback interface")
	return ""
}

func talkToMyself(t *testing.T, bytes int) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.WriteTo(make([]byte, bytes), conn.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.ReadFrom(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
}
