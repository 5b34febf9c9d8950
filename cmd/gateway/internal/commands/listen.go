package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config"
)

// listen opens all ports before any upstream is contacted.
func listen(ctx context.Context, c *config.Config, s secured, logger *slog.Logger) (l gateway.Listeners, err error) {
	l = gateway.Listeners{HTTPTLS: s.http.config(), GRPCTLS: s.grpc.config(), OperationsTLS: s.operations.config()}
	defer func() {
		if err != nil {
			closeListeners(l)
		}
	}()
	if l.HTTP, err = listenTCP(ctx, c.HTTP.Listen); err != nil {
		return l, fmt.Errorf("http: %w", err)
	}
	if l.GRPC, err = listenTCP(ctx, c.GRPC.Listen); err != nil {
		return l, fmt.Errorf("grpc: %w", err)
	}
	if l.Operations, err = listenOperations(ctx, c.Operations.Listen, logger); err != nil {
		return l, fmt.Errorf("operations: %w; another address is set by operations.listen or --operations, and off is none", err)
	}
	return l, nil
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

// operationsAddress is the operators' address, for the log.
func operationsAddress(l gateway.Listeners) string {
	if l.Operations == nil {
		return config.OperationsOff
	}
	return l.Operations.Addr().String()
}

func closeListeners(l gateway.Listeners) {
	for _, one := range []net.Listener{l.HTTP, l.GRPC, l.Operations} {
		if one != nil {
			one.Close()
		}
	}
}
