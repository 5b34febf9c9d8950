package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// clients is the process in which the clients run.
type clients struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// startClients starts this command again, as the clients.
func startClients(ctx context.Context, what, address string, o options) (*clients, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &clients{cmd: exec.CommandContext(
		ctx, self, "-clients", what, "-address", address, "-subscribers", strconv.Itoa(o.subscribers),
		"-commits", strconv.Itoa(o.commits), "-storms", strconv.Itoa(o.storms), "-snapshots", strconv.Itoa(o.snapshots),
	)}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.lines = bufio.NewScanner(out)
	return c, c.cmd.Start()
}

// await waits until they report their progress.
func (c *clients) await(want string) error {
	for c.lines.Scan() {
		if c.lines.Text() == want {
			return nil
		}
	}
	return fmt.Errorf("the clients ended before they were %q", want)
}

func (c *clients) stop() {
	c.cmd.Process.Kill()
	c.cmd.Wait() // it was killed
}

// runClients is the main function of the other process.
func runClients(what, address string, o options) error {
	switch what {
	case "live":
		return follow(address, o)
	case "snapshots":
		for range o.storms {
			if err := storm(address, o.snapshots); err != nil {
				return err
			}
		}
		fmt.Println("done")
		return nil
	}
	return fmt.Errorf("clients %q: want live or snapshots", what)
}

// follow reads all live events of all subscribers.
func follow(address string, o options) error {
	c, err := load.New(load.Options{Address: address, Marker: []byte(`"at":`)})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Open(o.subscribers, load.Request{Bytes: request("")}); err != nil {
		return err
	}
	fmt.Println("open")
	for c.Stats().Events < uint64(o.subscribers*o.commits) {
		if err := poll(c); err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}

// storm requests n snapshots at once, and reads them all.
func storm(address string, n int) error {
	c, err := load.New(load.Options{Address: address, EndIsDone: true})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Open(n, load.Request{Bytes: request("&until=end_of_snapshot"), Held: true}); err != nil {
		return err
	}
	for i := range n {
		c.Release(i)
	}
	for c.Stats().Done < uint64(n) {
		if err := poll(c); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long clients wait for data.
const patience = 30 * time.Second

// poll fails if nothing more arrives, or a client was lost.
func poll(c *load.Client) error {
	for began := time.Now(); ; {
		// An interrupted wait returns nothing too.
		events, err := c.Poll(time.Second)
		if err != nil {
			return err
		}
		s := c.Stats()
		if s.Lost+s.Refused > 0 || time.Since(began) > patience {
			return fmt.Errorf("want all published events; after %v the figures are %+v", time.Since(began), s)
		}
		if events > 0 {
			return nil
		}
	}
}

func request(parameters string) []byte {
	return []byte("GET /v1/events?watch=" + watch + parameters + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
}
