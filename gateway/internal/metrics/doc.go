// Package metrics counts what the gateway does, for Prometheus.
package metrics
