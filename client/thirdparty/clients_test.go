//go:build servers

package thirdparty

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	launchdarkly "github.com/launchdarkly/eventsource"
	r3labs "github.com/r3labs/sse/v2"
	tmaxmax "github.com/tmaxmax/go-sse"
	"gopkg.in/cenkalti/backoff.v1"
)

// follow follows a URL with one third-party client until the context ends. receive is
// called for each event, by one goroutine at a time. All that the client is told is
// where the stream is: it reconnects by itself. The error is why it gave up.
type follow func(ctx context.Context, url string, receive func(event, data string)) error

// clients are those that are tested, by the names of their projects.
var clients = map[string]follow{
	"r3labs":       followR3labs,
	"tmaxmax":      followTmaxmax,
	"launchdarkly": followLaunchdarkly,
	"eventsource":  followNode,
}

func followR3labs(ctx context.Context, url string, receive func(event, data string)) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := r3labs.NewClient(url)
	c.Connection = &http.Client{Transport: transport}
	// Its own strategy, which does not know that the context has ended.
	c.ReconnectStrategy = backoff.WithContext(backoff.NewExponentialBackOff(), ctx)
	return c.SubscribeRawWithContext(ctx, func(e *r3labs.Event) { receive(string(e.Event), string(e.Data)) })
}

func followTmaxmax(ctx context.Context, url string, receive func(event, data string)) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	c := (&tmaxmax.Client{HTTPClient: &http.Client{Transport: transport}}).NewConnection(request)
	c.SubscribeToAll(func(e tmaxmax.Event) { receive(e.Type, e.Data) })
	return c.Connect()
}

func followLaunchdarkly(ctx context.Context, url string, receive func(event, data string)) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	s, err := launchdarkly.SubscribeWithRequestAndOptions(request,
		launchdarkly.StreamOptionHTTPClient(&http.Client{Transport: transport}),
		launchdarkly.StreamOptionInitialRetry(10*time.Millisecond), // until the gateway says how long
		launchdarkly.StreamOptionErrorHandler(func(error) launchdarkly.StreamErrorHandlerResult {
			return launchdarkly.StreamErrorHandlerResult{}
		}))
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		select {
		case e, open := <-s.Events:
			if !open {
				return errors.New("it closed its stream")
			}
			receive(e.Event(), e.Data())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nodeModules has the packages of the TypeScript client, and for its tests the npm
// package eventsource: the EventSource of browsers, for Node.
const nodeModules = "../../web/client/node_modules"

func followNode(ctx context.Context, url string, receive func(event, data string)) error {
	cmd := exec.CommandContext(ctx, "node", "eventsource.mjs", nodeModules, url)
	cmd.WaitDelay = patience
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	read := readLines(out, receive)
	return errors.Join(read, cmd.Wait())
}

// readLines reads what eventsource.mjs prints.
func readLines(from io.Reader, receive func(event, data string)) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var e struct{ Event, Data string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%w: %q", err, lines.Bytes())
		}
		receive(e.Event, e.Data)
	}
	return lines.Err()
}

// missing returns why a client cannot be tested on this machine; empty: it can.
func missing(name string) string {
	if name != "eventsource" {
		return ""
	}
	if _, err := exec.LookPath("node"); err != nil {
		return "node is missing"
	}
	if _, err := os.Stat(nodeModules + "/eventsource"); err != nil {
		return "the npm package eventsource is not installed: run npm ci in web/client"
	}
	return ""
}
