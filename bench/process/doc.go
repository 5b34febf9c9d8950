// Package process runs the programs of measurements: the gateway as it is shipped, and the
// load generator.
package process
