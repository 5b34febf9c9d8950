// Package series keeps an hour of figures of each watch of the configuration, so that charts are
// full when a page opens.
//
// Pumps add to a Tally, without a lock. Once a second a Recorder reads all tallies and watches,
// and adds a sample to the hour of each.
package series
