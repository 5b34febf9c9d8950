// Package otlp sends spans to a collector of OpenTelemetry, and decides which there are.
package otlp
