package telemetry

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/watchtide/watchtide/internal/config"
)

// Settings say where spans go, and how many there are.
type Settings struct {
	// Endpoint is the URL of the collector; empty: nothing is traced.
	Endpoint string
	// Protocol is one of config.TracingProtocols.
	Protocol string
	// Requests is how many requests are traced in a second.
	Requests int
	// ClientRequests is how many requests are traced in a second in addition, because their
	// clients ask for it.
	ClientRequests int
	// Page is the attribute, true, with which spans begin whose parent is of a web page, and asks
	// for nothing. Default: there are none.
	Page attribute.Key
}

// NewSettings returns the settings of a configuration, with what it leaves to the standard
// variables of OpenTelemetry. lookup returns a variable.
func NewSettings(c config.Tracing, lookup func(string) (string, bool)) (Settings, error) {
	s := Settings{Endpoint: c.Endpoint, Protocol: c.Protocol, Requests: c.RequestsPerSecond, ClientRequests: c.ClientRequestsPerSecond}
	env := environment(lookup)
	if env.value("OTEL_SDK_DISABLED") == "true" || env.value("OTEL_TRACES_EXPORTER") == "none" {
		return Settings{}, nil
	}
	if s.Protocol == "" {
		s.Protocol = cmp.Or(env.value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env.value("OTEL_EXPORTER_OTLP_PROTOCOL"), config.HTTPProtobuf)
		if !config.ValidTracingProtocol(s.Protocol) {
			return Settings{}, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: want %s", s.Protocol, strings.Join(config.TracingProtocols, " or "))
		}
	}
	if s.Endpoint != "" {
		s.Endpoint = s.withPath(s.Endpoint)
		return s, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		text := env.value(name)
		if text == "" {
			continue
		}
		if !config.ValidTracingEndpoint(text) {
			return Settings{}, fmt.Errorf("%s is %q: want %s", name, text, config.WantTracingEndpoint)
		}
		s.Endpoint = text
		if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			s.Endpoint = s.withPath(text)
		}
		return s, nil
	}
	return Settings{}, nil
}

// withPath returns the URL for traces of a collector. A URL of gRPC has no path.
func (s Settings) withPath(collector string) string {
	u, err := url.Parse(collector)
	if err != nil || s.Protocol == config.GRPCProtocol {
		return collector
	}
	return u.JoinPath("v1", "traces").String()
}

// environment looks up variables.
type environment func(string) (string, bool)

// value returns the value of a variable, without spaces around it; empty: it is not set.
func (e environment) value(name string) string {
	text, _ := e(name)
	return strings.TrimSpace(text)
}
