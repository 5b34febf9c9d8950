package changes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/watchtide/watchtide/client"
)

const (
	// defaultGrace is how long a command may go on when the process is asked to end.
	defaultGrace = 10 * time.Second
	// defaultKillAfter is how long it may take to end when it is asked to.
	defaultKillAfter = 5 * time.Second
	// firstRetry and lastRetry bound the time between two attempts, which doubles.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// maxKeyBytes is the longest key in a variable: with a longer one no program may start.
	maxKeyBytes = 32 << 10
)

// HookCommand is a command of the shell that handles changes.
//
// Owned by one goroutine.
type HookCommand struct {
	// Line is what sh -c runs.
	Line string
	// Retries is how often a failed command is run again for a change; negative: until it
	// succeeds.
	Retries int
	// Stdout and Stderr are those of the command. For an *os.File nothing is in between.
	Stdout, Stderr io.Writer
	Logger         *slog.Logger

	grace, killAfter time.Duration // 0: the defaults
}

// Run runs the command for a change until it succeeds. When ctx ends, a command that runs is
// given the time to finish.
func (c *HookCommand) Run(ctx context.Context, e client.Event) error {
	for failures, wait := 0, firstRetry; ; failures, wait = failures+1, min(2*wait, lastRetry) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := c.runOnce(ctx, e)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case c.Retries >= 0 && failures >= c.Retries:
			return fmt.Errorf("the command failed for %s of %q in %s: %w", e.Type, e.Key, e.Watch, err)
		}
		c.Logger.Error("the command failed", "watch", e.Watch, "key", e.Key, "type", e.Type, "revision", e.Revision, "error", err, "retry_in", wait)
		if err := client.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// runOnce runs the command to its end.
func (c *HookCommand) runOnce(ctx context.Context, e client.Event) error {
	ctx, stop := withGrace(ctx, cmp.Or(c.grace, defaultGrace))
	defer stop()
	run := exec.CommandContext(ctx, "sh", "-c", c.Line)
	run.Stdin = io.MultiReader(bytes.NewReader(e.Data), strings.NewReader("\n"))
	run.Stdout, run.Stderr = c.Stdout, c.Stderr
	run.Env = append(os.Environ(), variables(e)...)
	run.Cancel = func() error { return terminate(run) }
	run.WaitDelay = cmp.Or(c.killAfter, defaultKillAfter)
	ownGroup(run)
	err := run.Run()
	if ctx.Err() != nil && run.Process != nil {
		kill(run)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it has succeeded, and left a process that holds its output
	}
	return err
}

// withGrace returns a context that ends some time after ctx.
func withGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if client.Pause(longer, grace) == nil {
			cancel()
		}
	})
	return longer, func() { stop(); cancel() }
}

// variables describe the change in the environment of the command. A key that cannot be in
// one is in base64, as one that is not text.
func variables(e client.Event) []string {
	key, encoding := e.Key, e.KeyEncoding
	if strings.ContainsRune(key, 0) {
		key, encoding = base64.StdEncoding.EncodeToString([]byte(key)), "base64"
	}
	if len(key) > maxKeyBytes {
		key, encoding = "", "too long"
	}
	return []string{
		"WATCHTIDE_TYPE=" + string(e.Type),
		"WATCHTIDE_WATCH=" + e.Watch,
		"WATCHTIDE_KEY=" + key,
		"WATCHTIDE_KEY_ENCODING=" + encoding,
		"WATCHTIDE_REVISION=" + e.Revision,
	}
}
