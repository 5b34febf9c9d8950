package config

import (
	"net/url"
	"slices"
	"time"
)

// Tracing is the section "tracing".
type Tracing struct {
	// Endpoint is the URL of a collector of OpenTelemetry (that of the standard variables, or
	// none: nothing is traced).
	Endpoint string `yaml:"endpoint,is=tracing endpoint"`
	// Protocol is how spans are sent (one of TracingProtocols; that of the standard variables,
	// or HTTPProtobuf).
	Protocol string `yaml:"protocol,is=tracing protocol"`
	// RequestsPerSecond is how many requests are traced.
	RequestsPerSecond int `yaml:"requests_per_second"`
	// ClientRequestsPerSecond is how many are traced in addition because their clients ask for
	// it.
	ClientRequestsPerSecond int `yaml:"client_requests_per_second"`
	// SlowSnapshot is how long a subscriber may wait for the state of a watch until that is
	// traced.
	SlowSnapshot time.Duration `yaml:"slow_snapshot,min=1ms"`
	// SlowCommit is how long a change may take to a subscriber that keeps up until it is traced.
	SlowCommit time.Duration `yaml:"slow_commit,min=1ms"`
}

// The protocols of OTLP, by their standard names.
const (
	GRPCProtocol = "grpc"
	HTTPProtobuf = "http/protobuf"
)

// TracingProtocols are the ways to send spans.
var TracingProtocols = []string{GRPCProtocol, HTTPProtobuf}

// WantTracingEndpoint describes a valid endpoint.
const WantTracingEndpoint = "the URL of a collector, such as http://collector:4318, or for gRPC http://collector:4317; https for TLS"

// ValidTracingEndpoint reports whether text is the URL of a collector.
func ValidTracingEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// ValidTracingProtocol reports whether text is one of TracingProtocols.
func ValidTracingProtocol(text string) bool { return slices.Contains(TracingProtocols, text) }
