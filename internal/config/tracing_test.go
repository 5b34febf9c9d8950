package config

import (
	"strings"
	"testing"
)

func TestTracingEndpoint(t *testing.T) {
	for text, want := range map[string]bool{
		"http://collector:4318": true, "https://collector.example.com": true, "http://[::1]:4317": true, "http://c/otlp": true,
		"": false, "collector:4317": false, "grpc://collector:4317": false, "http://": false, "http://:4317": false,
		"http://user:secret@collector": false, "http://collector?a=b": false,
	} {
		if ValidTracingEndpoint(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}

// TestTracingMistakes: each is reported with its place.
func TestTracingMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`tracing: { endpoint: "collector:4317" }`:    `f:1:22: tracing.endpoint: "collector:4317": want the URL of a collector`,
		"tracing: { protocol: http/json }":           "f:1:22: tracing.protocol: \"http/json\": want grpc or http/protobuf",
		"tracing: { requests_per_second: 0 }":        "want a whole number of at least 1",
		"tracing: { slow_commit: 0s }":               "tracing.slow_commit",
		"tracing: { sample: 1 }":                     `unknown key "sample" in tracing`,
		"operations: { flight_recorder: sometimes }": "operations.flight_recorder",
	} {
		_, err := Parse("f", []byte(text), Environment{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
