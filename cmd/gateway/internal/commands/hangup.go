package commands

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// ignoreHangups keeps SIGHUP from ending the process, and logs each one: it asks
// many servers to reload their configuration, which serve cannot do. stop
// restores the previous effect of SIGHUP, and waits for the goroutine.
func ignoreHangups(logger *slog.Logger) (stop func()) {
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangups {
			logger.Warn("SIGHUP ignored: reloading the configuration is not supported; restart the process to apply changes")
		}
	}()
	return func() {
		signal.Stop(hangups) // when it returns, nothing more is sent
		close(hangups)
		<-done
	}
}
