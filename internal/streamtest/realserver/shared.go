package realserver

import (
	"os"
	"sync"
	"testing"
)

// shared are the servers that live as long as the process: command → server.
var shared struct {
	mu      sync.Mutex // held while one is started
	servers map[string]*Server
}

// Shared returns a server that all tests of a package use, each with a prefix,
// bucket or namespace of its own: it is started by the first call with these
// arguments, and started again if it died. It ends with the process: see [Main].
// A server must remove its files itself at SIGTERM, since the folder of a test
// does not live as long.
func Shared(t testing.TB, path string, args ...string) *Server {
	t.Helper()
	c := Command{Path: path, Args: args}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if s := shared.servers[c.String()]; s != nil && s.Alive() {
		return s
	}
	s, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	if shared.servers == nil {
		shared.servers = map[string]*Server{}
	}
	shared.servers[c.String()] = s
	return s
}

// Main returns m with an end at which all shared servers are stopped, so that a
// check for goroutines after the tests finds none of theirs.
func Main(m *testing.M) TestingM { return main{m} }

// TestingM is what goleak.VerifyTestMain requires.
type TestingM interface{ Run() int }

type main struct{ *testing.M }

// Run runs the tests, and then stops the shared servers.
func (m main) Run() int {
	defer stopShared()
	return m.M.Run()
}

func stopShared() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for name, s := range shared.servers {
		s.Stop() // the tests are over: it does not matter whether it was killed
		if s.command.Remove != "" {
			os.RemoveAll(s.command.Remove)
		}
		delete(shared.servers, name)
	}
}
