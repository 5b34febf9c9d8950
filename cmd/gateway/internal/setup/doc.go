// Package setup finds upstreams that can be watched, and writes a configuration for them.
package setup
