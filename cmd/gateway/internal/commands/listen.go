package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"syscall"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config"
)

// listen opens the port for operators before any upstream is contacted. The others are
// opened by the gateway once it has data.
func listen(ctx context.Context, c *config.Config, s secured, logger *slog.Logger) (l gateway.Listeners, err error) {
	l = gateway.Listeners{HTTPTLS: s.http.config(), GRPCTLS: s.grpc.config(), OperationsTLS: s.operations.config()}
	if l.Operations, err = listenOperations(ctx, c.Operations.Listen, logger); err != nil {
		return l, fmt.Errorf("operations: %w; another address is set by operations.listen or --operations, and off is none", err)
	}
	return l, nil
}

// listenPublic opens the ports for clients. That for gRPC is nil if it is off.
func listenPublic(ctx context.Context, c *config.Config) (web, calls net.Listener, err error) {
	if web, err = listenTCP(ctx, c.HTTP.Listen); err != nil {
		return nil, nil, fmt.Errorf("http: %w", err)
	}
	if c.GRPC.Listen == "" {
		return web, nil, nil
	}
	if calls, err = listenTCP(ctx, c.GRPC.Listen); err != nil {
		web.Close()
		return nil, nil, fmt.Errorf("grpc: %w", err)
	}
	return web, calls, nil
}

func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // no browser or proxy speaks it, and its sockets have fewer options
	return lc.Listen(ctx, "tcp", address)
}

// listenOperations opens the port for operators. The default one was not
// explicitly requested: if another gateway has it, the process starts anyway.
func listenOperations(ctx context.Context, address string, logger *slog.Logger) (net.Listener, error) {
	if address == config.OperationsOff {
		return nil, nil
	}
	l, err := listenTCP(ctx, address)
	if address != config.DefaultOperations || !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if l, err = listenTCP(ctx, "127.0.0.1:0"); err == nil {
		logger.Warn("the default address for operators is taken, and another one used: set operations.listen or --operations",
			"taken", address, "operations", l.Addr().String())
	}
	return l, err
}

// addressOf is the address of a listener, for the log.
func addressOf(l net.Listener) string {
	if l == nil {
		return config.OperationsOff
	}
	return l.Addr().String()
}

// dashboardAt is the URL at which a browser on this machine finds the page of a listener. One that
// takes connections to every address takes those to loopback.
func dashboardAt(listener net.Addr, encrypted bool) string {
	at := url.URL{Scheme: "http", Host: listener.String(), Path: "/"}
	if encrypted {
		at.Scheme = "https"
	}
	if host, port, err := net.SplitHostPort(at.Host); err == nil && net.ParseIP(host).IsUnspecified() {
		at.Host = net.JoinHostPort("127.0.0.1", port)
	}
	return at.String()
}
