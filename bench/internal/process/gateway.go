package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Patience is how long a measurement waits for something that should happen at once.
const Patience = 30 * time.Second

// Gateway is a gateway process. For one goroutine, except for Get.
type Gateway struct {
	// Static after construction.
	HTTP, GRPC, Operations string // host:port
	cmd                    *exec.Cmd
	log                    io.Writer     // of its messages; nil: warnings and errors are shown
	read                   chan struct{} // closed when all its messages were read
	client                 *http.Client
}

// Dial makes a connection, as that of a net.Dialer does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Start starts a program with a configuration, and waits until it is ready. Stop it.
func Start(ctx context.Context, program, file string) (*Gateway, error) {
	return StartLogged(ctx, program, file, nil)
}

// StartLogged is Start of a gateway whose messages are written to log. If log is nil, warnings
// and errors are shown.
func StartLogged(ctx context.Context, program, file string, log io.Writer) (*Gateway, error) {
	return StartBehind(ctx, program, file, log, nil)
}

// StartBehind is StartLogged of a gateway that dial reaches, such as one in a network
// namespace: that of the thread that calls. If dial is nil, any connection reaches it.
func StartBehind(ctx context.Context, program, file string, log io.Writer, dial Dial) (*Gateway, error) {
	g := &Gateway{cmd: exec.CommandContext(ctx, program, "serve", "--config", file), log: log, read: make(chan struct{})}
	g.client = &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 4}, Timeout: Patience}
	if err := g.start(ctx); err != nil {
		g.Stop()
		return nil, err
	}
	return g, nil
}

func (g *Gateway) start(ctx context.Context) error {
	messages, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	g.cmd.Stderr = theirs
	err = g.cmd.Start()
	theirs.Close()
	if err != nil {
		messages.Close()
		return err
	}
	found := make(chan map[string]any, 1)
	go func() {
		defer close(g.read)
		defer messages.Close()
		defer close(found)
		g.listen(messages, found)
	}()
	select {
	case addresses, ok := <-found:
		if !ok {
			return errors.New("the gateway has ended before it listened")
		}
		g.HTTP, _ = addresses["http"].(string)
		g.GRPC, _ = addresses["grpc"].(string)
		g.Operations, _ = addresses["operations"].(string)
	case <-time.After(Patience):
		return errors.New("the gateway does not listen")
	}
	at := g.HTTP
	if g.Operations != "" { // the other one may have TLS
		at = g.Operations
	}
	return Await(ctx, "the gateway to be ready", func() (bool, error) {
		_, err := g.Get(ctx, at, "/readyz")
		return err == nil, nil
	})
}

// longestMessage is the longest that is read, in bytes.
const longestMessage = 256 << 20

// listen reads the messages of a gateway, and passes on the one with its addresses.
func (g *Gateway) listen(messages io.Reader, found chan<- map[string]any) {
	lines := bufio.NewScanner(messages)
	lines.Buffer(nil, longestMessage)
	for lines.Scan() {
		var m map[string]any
		err := json.Unmarshal(lines.Bytes(), &m)
		switch {
		case g.log != nil:
			fmt.Fprintf(g.log, "%s\n", lines.Bytes())
		case err != nil || m["level"] == "WARN" || m["level"] == "ERROR":
			fmt.Fprintln(os.Stderr, "gateway:", lines.Text())
		}
		if m["msg"] == "listening" && len(found) == 0 {
			found <- m
		}
	}
}

// Await waits until a condition is true.
func Await(ctx context.Context, what string, so func() (bool, error)) error {
	for began := time.Now(); ; {
		if ok, err := so(); ok || err != nil {
			return err
		}
		if time.Since(began) > 4*Patience {
			return fmt.Errorf("waited %v for %s", 4*Patience, what)
		}
		if err := Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// Sleep waits, unless it is cancelled.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Get returns the body of an answer.
func (g *Gateway) Get(ctx context.Context, address, path string) ([]byte, error) {
	return g.GetAs(ctx, "", address, path)
}

// GetAs is Get with a token; empty: none.
func (g *Gateway) GetAs(ctx context.Context, token, address, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := g.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, body)
	}
	return body, err
}

// Stop ends the gateway. It is killed: it would wait for clients to read its goodbyes.
func (g *Gateway) Stop() {
	if g.cmd.Process != nil {
		g.cmd.Process.Kill()
		g.cmd.Wait() // it was killed
		<-g.read
	}
	g.client.CloseIdleConnections()
}

// PID is the process.
func (g *Gateway) PID() int { return g.cmd.Process.Pid }

// Drain asks the gateway to end, and waits until it has moved its clients and ended.
func (g *Gateway) Drain(ctx context.Context) error {
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		<-g.read
		ended <- g.cmd.Wait()
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(4 * Patience):
		return fmt.Errorf("the gateway has not ended %v after SIGTERM", 4*Patience)
	}
}

// Metric is a figure of the gateway: the sum, if there is one for each label.
func (g *Gateway) Metric(ctx context.Context, name string) (sum float64, err error) {
	text, err := g.Get(ctx, g.Operations, "/metrics")
	if err != nil {
		return 0, err
	}
	found := false
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		words := strings.Fields(rest)
		n, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("/metrics: %q: %w", line, err)
		}
		sum, found = sum+n, true
	}
	if !found {
		return 0, fmt.Errorf("/metrics has no %s", name)
	}
	return sum, nil
}

// Keep writes an answer of the gateway to a file, in the background. The function that it
// returns waits for that.
func (g *Gateway) Keep(ctx context.Context, path, file string) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		body, err := g.Get(ctx, g.Operations, path)
		if err == nil {
			err = os.WriteFile(file, body, 0o644)
		}
		done <- err
	}()
	return func() error { return <-done }
}

// Reload makes the gateway read its configuration again.
func (g *Gateway) Reload() error { return g.cmd.Process.Signal(syscall.SIGHUP) }
