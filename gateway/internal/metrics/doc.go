// Package metrics has the gateway's Prometheus metrics.
package metrics
