package gateway

import (
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Config says what a Gateway serves, and how. The zero value of every field but
// Registry is its documented default.
type Config struct {
	// Registry holds the watches. Required. The gateway neither adds watches
	// nor closes it.
	Registry *stream.Registry
	// Logger receives what an operator wants to know. Default: slog.Default().
	Logger *slog.Logger

	// Heartbeat is the longest silence on a stream. Default: 15 s.
	Heartbeat time.Duration
	// WriteTimeout ends a stream to whose client no byte could be written for
	// so long. Default: 10 s.
	WriteTimeout time.Duration
	// Retry is the base of the hint to clients when to come back: each
	// connection gets its own, from half to one and a half of it. Default: 2 s.
	Retry time.Duration
	// MaxAge ends a stream that is so old, give or take 10 % of its own, so
	// that load spreads over replicas again. Default: 30 min. Negative: never.
	MaxAge time.Duration
	// PrimeWait is how long a request that needs the whole state waits for a
	// watch that is not primed yet. Default: 5 s.
	PrimeWait time.Duration
	// AheadWait is how long a position that is ahead of this replica is held
	// until it is reached. Default: 3 s.
	AheadWait time.Duration
	// StaleAllowed is how long a watch may be stale before the gateway says
	// that it is not ready. Default: 5 min.
	StaleAllowed time.Duration
	// Drain is the time over which the goodbyes of open streams are spread at
	// shutdown. Default: 10 s. Negative: all at once.
	Drain time.Duration

	// Pump says what carries the streams. Default: PumpShards.
	Pump Pump

	// MaxSubscribers is the most streams that may be open at the same time,
	// over all transports; one more is refused as overload. 0: no limit.
	MaxSubscribers int
	// AllowedOrigins lists the origins of other web sites that may read the
	// API from a browser, each as a browser sends it: "https://app.example.com".
	AllowedOrigins []string
	// Metrics serves /metrics on the same listener as the API.
	Metrics bool
	// Version of the program, for /healthz and the like. Default: "dev".
	Version string
}

// Pump is a way to carry streams.
type Pump string

const (
	// PumpShards carries plain HTTP/1.1, where Serve accepted it on Linux, with a
	// few goroutines in all, and all else as PumpGoroutines does.
	PumpShards Pump = "shards"
	// PumpGoroutines carries each stream with a goroutine of its own.
	PumpGoroutines Pump = "goroutines"
)

// sockets returns those of the system, unless they are not wanted.
func (c Config) sockets() sockets {
	if c.Pump == PumpGoroutines {
		return nil
	}
	return systemSockets()
}

// check returns an error that names the first field that cannot be meant.
func (c Config) check() error {
	if c.Registry == nil {
		return fmt.Errorf("gateway.Config: Registry is missing")
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"Heartbeat", c.Heartbeat}, {"WriteTimeout", c.WriteTimeout}, {"Retry", c.Retry},
		{"PrimeWait", c.PrimeWait}, {"AheadWait", c.AheadWait}, {"StaleAllowed", c.StaleAllowed},
	} {
		if f.d < 0 {
			return fmt.Errorf("gateway.Config: %s is %s: want a positive duration, or 0 for the default", f.name, f.d)
		}
	}
	if c.MaxSubscribers < 0 {
		return fmt.Errorf("gateway.Config: MaxSubscribers is %d: want a positive number, or 0 for no limit", c.MaxSubscribers)
	}
	if c.Pump != "" && c.Pump != PumpShards && c.Pump != PumpGoroutines {
		return fmt.Errorf("gateway.Config: Pump is %q: want %s or %s", c.Pump, PumpShards, PumpGoroutines)
	}
	return checkOrigins(c.AllowedOrigins)
}

// checkOrigins refuses what no browser would ever send as an Origin, "*" and
// "null" among it: answers to them would be open to everybody.
func checkOrigins(origins []string) error {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o {
			return fmt.Errorf("gateway.Config: AllowedOrigins: %q: want scheme://host or scheme://host:port, as a browser sends it", o)
		}
	}
	return nil
}

// withDefaults returns c with every zero value replaced by its default.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	for _, f := range []struct {
		d       *time.Duration
		standby time.Duration
	}{
		{&c.Heartbeat, 15 * time.Second},
		{&c.WriteTimeout, 10 * time.Second},
		{&c.Retry, 2 * time.Second},
		{&c.MaxAge, 30 * time.Minute},
		{&c.PrimeWait, 5 * time.Second},
		{&c.AheadWait, 3 * time.Second},
		{&c.StaleAllowed, 5 * time.Minute},
		{&c.Drain, 10 * time.Second},
	} {
		if *f.d == 0 {
			*f.d = f.standby
		}
	}
	return c
}
