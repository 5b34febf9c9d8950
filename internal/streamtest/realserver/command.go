package realserver

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Patience is how long a server may take until it is ready. Only a failing one takes
// so long: a large server on a busy machine needs a while.
const Patience = 2 * time.Minute

// Command specifies how a server is started.
type Command struct {
	// Path is the program: see [Build] and [Installed]. Required.
	Path string
	// Args are its arguments, without its name.
	Args []string
	// Env is added to the environment of the tests, as "NAME=value".
	Env []string
	// Dir is where it runs; "": where the tests run.
	Dir string
	// Address is where it serves, host:port, if it prints no line "ready". It
	// is then ready once that accepts connections.
	Address string
	// User is who runs it if the tests are run by root; "": root.
	User string
	// Remove is a folder that is removed when a server ends that all tests share; "": none.
	Remove string
}

// Start starts a server that prints "ready", and ends it with the test. See
// [Command.Start].
func Start(t testing.TB, path string, args ...string) *Server {
	t.Helper()
	return Command{Path: path, Args: args}.Start(t)
}

// Start starts the server and waits until it is ready. It is killed at the end
// of the test, whose log gets the tail of its output if the test failed. The test
// fails if the server is not ready in time.
func (c Command) Start(t testing.TB) *Server {
	t.Helper()
	s, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the last output of %s:\n%s", c.Path, s.Output())
		}
	})
	return s
}

func (c Command) start() (*Server, error) {
	s := &Server{command: c}
	return s, s.Restart()
}

// String names the command in an error.
func (c Command) String() string { return fmt.Sprint(append([]string{c.Path}, c.Args...)) }

// FreeAddress returns 127.0.0.1 with such a port.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return Address(FreePort(t))
}

func (c Command) environment() []string { return append(os.Environ(), c.Env...) }
