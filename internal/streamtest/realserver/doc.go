// Package realserver runs the real servers that sources are tested against, as
// processes of their own: they are built without the race detector, they can be killed,
// paused and restarted as the machine under them would, and their dependencies stay out
// of the product's go.mod.
//
// # A server
//
// A server is a nested module internal/streamtest/upstreams/<name> with a main package in
// its root. It
//
//   - takes its settings from flags. Those that a restart must find again (the
//     port, the data directory) must be among them: see [FreePort];
//   - prints one line "ready <address> [<field>…]" on stdout once it serves.
//     [Server.Addr] is the address, [Server.Fields] is the rest;
//   - ends at SIGTERM, and when its standard input ends, since that is how it
//     learns that the tests are gone.
//
// The end of such a main is five lines:
//
//	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
//	defer stop()
//	fmt.Println("ready", listener.Addr())
//	go func() { io.Copy(io.Discard, os.Stdin); stop() }()
//	<-ctx.Done()
//
// # A test
//
//	server := realserver.Start(t, realserver.Build(t, "etcd"), "-listen", address, "-data", t.TempDir())
//	server.Addr()    // where it serves
//	server.Kill()    // SIGKILL: it is gone
//	server.Restart() // the same program with the same arguments
//	server.Pause()   // SIGSTOP: it holds its connections, and sends nothing
//	server.Resume()
//
// The server ends with the test. One that all tests of a package use is made with
// [Shared], and ends with the process:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(realserver.Main(m)) }
//
// A program that does not report that it is ready, such as the etcd of a Linux
// distribution ([Installed]), is a [Command] with an Address: it is ready when that
// accepts connections.
//
// # Proxy
//
// It is a TCP proxy on the loopback interface, between a source and
// its upstream, that fails on demand: it cuts, stalls, refuses, delays, trickles and
// half-closes. It does not interpret the bytes.
//
//	proxy := realserver.NewProxy(t, server.Addr())
//	source := newSource(proxy.Addr())
//	proxy.Stall() // bytes stop both ways, and no connection is closed
//	proxy.Heal()  // everything that was held back arrives
//
// There are two kinds of faults. [Proxy.Stall], [Proxy.Refuse], [Proxy.Delay] and
// [Proxy.Trickle] are states, which last until [Proxy.Heal] and apply to existing
// and new connections; they add up. [Proxy.Cut] and [Proxy.HalfClose] are events:
// they happen to the existing connections.
//
// # Ports
//
// It gives tests addresses on this machine that no other process gets.
//
// A listener on port 0 gets a port from the range that outgoing connections use too.
// If the listener is closed for a while (a server is restarted, a proxy refuses), an
// outgoing connection may take the port; worse, a client that keeps dialing the
// closed port is eventually given that same port as its own, and is then connected
// to itself. The ports of this package are below that range.
package realserver
