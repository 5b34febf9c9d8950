package commands

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/watchtide/watchtide/cmd/gateway/internal/telemetry"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// daemon has the parts of the process that a configuration changes.
//
// Owned by one goroutine at a time: first serve, then the reloader.
type daemon struct {
	// Static after construction.
	logger   *slog.Logger
	stderr   io.Writer // for the audit log
	hide     func(message string) string
	registry *watch.Registry
	views    *views.Views // that configurations declare
	secured  secured
	spans    *telemetry.Exporter       // nil: nothing is traced
	flight   *telemetry.FlightRecorder // nil: nothing is recorded
	gateway  *gateway.Gateway
	started  *config.Config // the TLS configuration of the listeners

	current   *config.Config // in effect; nil: none is yet
	upstreams *upstreams     // of current

	cluster atomic.Pointer[clusterAccess] // of current; nil: it has none; set by the owner only
}

// apply puts a configuration into effect. On an error, the former one stays.
//
// The settings of requests change before the watches do, so that no watch is served under the
// rules of a configuration that does not have it.
func (s *daemon) apply(c *config.Config) (counts, error) {
	up := s.upstreams.next(c)
	d, n, err := up.draft(s.registry, s.current)
	if err != nil {
		s.upstreams.settle()
		return counts{}, err
	}
	if err := s.reload(c); err != nil {
		d.Discard()
		s.upstreams.settle()
		return counts{}, err
	}
	s.secured.set(c)
	s.views.LimitGroups(c.Stream.MaxCountGroups)
	up.memory.SetBytes(cmp.Or(c.Stream.Memory.Total, defaultMemory()))
	d.Commit()
	up.settle()
	up.journal.Retain(c.Journals())
	s.current, s.upstreams = c, up
	return n, nil
}

// reload puts a configuration into effect. On an error, the former one stays.
func (s *daemon) reload(c *config.Config) error {
	out, err := c.Auth.Audit.Open(s.stderr)
	if err != nil {
		return err
	}
	gc := gatewayConfig(c)
	if gc.Access != nil {
		gc.Access.Audit = out
	}
	next, err := s.askCluster(c, gc.Access)
	if err == nil {
		err = s.gateway.Reload(gc)
	}
	if f, ok := out.(io.Closer); ok && err != nil {
		_ = f.Close() // nothing was written to it
	}
	if err != nil {
		next.close(s.cluster.Load())
		return err
	}
	s.cluster.Swap(next).close(next)
	return nil
}

// askCluster adds what a cluster is asked to the access of a configuration, and returns it; nil: it
// asks none.
func (s *daemon) askCluster(c *config.Config, into *gateway.Access) (*clusterAccess, error) {
	next, err := clusterOf(c, s.cluster.Load(), s.logger)
	if next != nil && into != nil {
		into.Credentials.Cluster, into.Rights = next.tokens, next.rights
	}
	return next, err
}

// warnOfRestart logs the changes of the configuration that a reload cannot put into effect.
func (s *daemon) warnOfRestart() {
	was, is := s.started, s.current
	for _, k := range []struct {
		name    string
		was, is any
	}{
		{"http.listen", was.HTTP.Listen, is.HTTP.Listen},
		{"grpc.listen", was.GRPC.Listen, is.GRPC.Listen},
		{"operations.listen", was.Operations.Listen, is.Operations.Listen},
		{"http.tls", was.HTTP.TLS != nil, is.HTTP.TLS != nil},
		{"grpc.tls", was.GRPC.TLS != nil, is.GRPC.TLS != nil},
		{"operations.tls", was.Operations.TLS != nil, is.Operations.TLS != nil},
		{"operations.flight_recorder", was.Operations.FlightRecorder, is.Operations.FlightRecorder},
		{"tracing", was.Tracing, is.Tracing},
		{"state.dir", was.State.Dir, is.State.Dir},
		{"state.max_age", was.State.MaxAge, is.State.MaxAge},
		{"stream.pump", was.Stream.Pump, is.Stream.Pump},
	} {
		if k.was != k.is {
			s.logger.Warn("a restart is needed for this to take effect", "key", k.name, "in_effect", k.was, "configured", k.is)
		}
	}
}

// hangups delivers SIGHUP, and keeps it from ending the process until stop is called. Several
// that arrive while nothing receives them count as one.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// reloader puts newer configurations into effect while the gateway serves: after a SIGHUP,
// and when a file of the configuration has changed.
//
// Owned by its goroutine.
type reloader struct {
	daemon  *daemon
	options serveOptions
	hangups <-chan os.Signal
	files   *Watcher // nil: there is no configuration file
}

// startReloading starts the goroutine of the reloader. read is the content of the files from
// which the current configuration was read. stop ends the goroutine and waits for it.
func startReloading(ctx context.Context, r *reloader, read Contents) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	if r.options.config != "" {
		r.files = newFileWatcher()
		r.files.Follow(read)
	}
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx) })
	return func() {
		cancel()
		running.Wait()
		if r.files != nil {
			r.files.Close()
		}
	}
}

// run reloads until ctx ends: a process that drains needs no newer configuration.
func (r *reloader) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.hangups:
			r.reload("SIGHUP")
		case <-r.changed():
			r.reload("a file has changed")
		}
	}
}

func (r *reloader) changed() <-chan struct{} {
	if r.files == nil {
		return nil
	}
	return r.files.Changed()
}

func (r *reloader) reload(why string) {
	if r.files == nil {
		r.daemon.logger.Warn("there is nothing to reload: serve was started without --config", "reason", why)
		return
	}
	var n counts
	read := Contents{}
	c, err := r.options.load(read.ReadAgain)
	if err == nil {
		n, err = r.daemon.apply(c)
	}
	r.files.Follow(read)
	r.daemon.gateway.Reloaded(err)
	if err != nil {
		r.reopenAudit()
		r.failed(why, err)
		return
	}
	r.daemon.warnOfRestart()
	r.daemon.logger.Info("configuration reloaded", "reason", why, "kept", n.kept, "replaced", n.replaced, "added", n.added, "removed", n.removed)
}

// reopenAudit opens the file of the audit log again although the configuration stays: the file
// may have been renamed.
func (r *reloader) reopenAudit() {
	if r.daemon.current.Auth.Audit.File == "" {
		return
	}
	if err := r.daemon.reload(r.daemon.current); err != nil {
		r.daemon.logger.Error("the audit log goes on as it is", "error", err.Error())
	}
}

// failed logs why the old configuration stays, in a line for each mistake.
func (r *reloader) failed(why string, err error) {
	var mistakes config.Errors
	if !errors.As(err, &mistakes) {
		r.daemon.logger.Error("configuration not reloaded: the old one stays in effect", "reason", why, "error", err.Error())
		return
	}
	for _, m := range mistakes {
		r.daemon.logger.Error("configuration not reloaded: the old one stays in effect", "reason", why, "error", m.Error())
	}
}
