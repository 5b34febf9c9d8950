package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// A number of nanoseconds is useless to a reader.
func TestDurationsAreLoggedWithTheirUnit(t *testing.T) {
	for format, want := range map[string]string{JSON: `"retry_in":"1.235s"`, Text: "retry_in=1.235s"} {
		var out bytes.Buffer
		LogOptions{Format: format}.Logger(&out, false).Warn("lost", "retry_in", 1234567890*time.Nanosecond)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %s, want %s", format, out.String(), want)
		}
	}
}

func TestFormatOfTheLog(t *testing.T) {
	const text, asJSON = `msg=hello`, `"msg":"hello"`
	for name, c := range map[string]struct {
		args     []string
		terminal bool
		want     string
	}{
		"nothing, on a terminal": {nil, true, text},
		"nothing, to a file":     {nil, false, asJSON},
		"auto, on a terminal":    {[]string{"--log-format", "auto"}, true, text},
		"json, on a terminal":    {[]string{"--log-format", "JSON"}, true, asJSON},
		"text, to a file":        {[]string{"--log-format=text"}, false, text},
		"an unknown format":      {[]string{"--log-format", "xml"}, false, "want auto, text or json"},
		"an unknown level":       {[]string{"--log-level", "loud"}, false, "want debug, info, warn or error"},
		"a lower level":          {[]string{"--log-level", "error"}, false, ""},
	} {
		var o LogOptions
		var out bytes.Buffer
		root := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
			o.Logger(&out, c.terminal).Info("hello")
			return nil
		}}
		o.Flags(root)
		root.SetArgs(c.args)
		if err := root.Execute(); err != nil {
			out.WriteString(err.Error())
		}
		if got := out.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestGRPCLogIsForDebugging(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelDebug: 6, slog.LevelInfo: 0} {
		var out bytes.Buffer
		l := grpcLogger{LogOptions{Level: level, Format: JSON}.Logger(&out, false)}
		l.Info("a", 1)
		l.Infof("%d", 1)
		l.Warningln("a")
		l.Warningf("%d", 1)
		l.Error("a")
		l.Errorf("%d", 1)
		if got := strings.Count(out.String(), `"level":"DEBUG","msg":"grpc","severity":`); got != want {
			t.Errorf("%s: %d lines, want %d:\n%s", level, got, want, &out)
		}
	}
}
