// Package process runs the programs of measurements, the gateway as it is shipped and the load
// generator, describes the machine, and prints the table of figures and targets.
package process
