package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"google.golang.org/grpc/grpclog"
)

// LogFromGRPC redirects the messages that gRPC and grpc-gateway would write to
// standard error to a logger. Call it before any use of gRPC.
func LogFromGRPC(to *slog.Logger) { grpclog.SetLoggerV2(grpcLogger{to}) }

// grpcLogger is the logger of gRPC. Nearly all of gRPC's messages are about errors
// of clients and upstreams, which the gateway reports itself: so everything is
// logged at debug level.
type grpcLogger struct{ to *slog.Logger }

var _ grpclog.LoggerV2 = grpcLogger{}

func (l grpcLogger) log(severity, text string) {
	l.to.LogAttrs(context.Background(), slog.LevelDebug, "grpc", slog.String("severity", severity), slog.String("message", text))
}

// wants avoids formatting text that is discarded.
func (l grpcLogger) wants() bool { return l.to.Enabled(context.Background(), slog.LevelDebug) }

func (l grpcLogger) logArgs(severity string, args []any) {
	if l.wants() {
		l.log(severity, fmt.Sprint(args...))
	}
}

func (l grpcLogger) logFormat(severity, format string, args []any) {
	if l.wants() {
		l.log(severity, fmt.Sprintf(format, args...))
	}
}

// The methods of grpclog.LoggerV2.

func (l grpcLogger) Info(args ...any)                 { l.logArgs("info", args) }
func (l grpcLogger) Infoln(args ...any)               { l.logArgs("info", args) }
func (l grpcLogger) Infof(format string, args ...any) { l.logFormat("info", format, args) }

func (l grpcLogger) Warning(args ...any)                 { l.logArgs("warning", args) }
func (l grpcLogger) Warningln(args ...any)               { l.logArgs("warning", args) }
func (l grpcLogger) Warningf(format string, args ...any) { l.logFormat("warning", format, args) }

func (l grpcLogger) Error(args ...any)                 { l.logArgs("error", args) }
func (l grpcLogger) Errorln(args ...any)               { l.logArgs("error", args) }
func (l grpcLogger) Errorf(format string, args ...any) { l.logFormat("error", format, args) }

func (l grpcLogger) Fatal(args ...any)                 { l.fatal(fmt.Sprint(args...)) }
func (l grpcLogger) Fatalln(args ...any)               { l.fatal(fmt.Sprint(args...)) }
func (l grpcLogger) Fatalf(format string, args ...any) { l.fatal(fmt.Sprintf(format, args...)) }

// fatal must not return.
func (l grpcLogger) fatal(text string) {
	l.to.Error("grpc", "severity", "fatal", "message", text)
	os.Exit(1)
}

// V reports whether details at a level are wanted: none are.
func (l grpcLogger) V(level int) bool { return level <= 0 }
