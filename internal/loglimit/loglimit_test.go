package loglimit

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFloodIsCut checks that lines are left out, and counted in the next one.
func TestFloodIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := New(slog.New(slog.NewTextHandler(&out, nil)), 30)
		for i := range 100 {
			logger.With("watch", i).WithGroup("g").Info("opened")
			logger.Debug("not for this level")
		}
		if n := strings.Count(out.String(), "opened"); n != 30 {
			t.Errorf("%d lines", n)
		}
		<-time.After(time.Minute)
		out.Reset()
		logger.Info("opened")
		logger.Info("opened")
		if got := out.String(); strings.Count(got, "opened") != 2 || strings.Count(got, "lines_left_out=70") != 1 {
			t.Errorf("got %s", got)
		}
	})
}
