// Package telemetry has what the process tells about itself: its log, with the messages of gRPC in
// it, the spans that an [Exporter] sends to a collector of OpenTelemetry, its profiles, and what the
// flight recorder of the Go runtime has.
package telemetry
