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
package realserver
