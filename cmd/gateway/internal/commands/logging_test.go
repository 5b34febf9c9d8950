package commands

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A number of nanoseconds is useless to a reader.
func TestDurationsAreLoggedWithTheirUnit(t *testing.T) {
	for terminal, want := range map[bool]string{false: `"retry_in":"1.235s"`, true: "retry_in=1.235s"} {
		var out bytes.Buffer
		slog.New(logHandler(&out, terminal, slog.LevelInfo)).Warn("lost", "retry_in", 1234567890*time.Nanosecond)
		if !strings.Contains(out.String(), want) {
			t.Errorf("terminal %t: got %s, want %s", terminal, out.String(), want)
		}
	}
}
