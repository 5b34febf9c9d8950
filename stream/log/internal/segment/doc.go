// Package segment stores the entries of a log: ready-made frames in slabs, each with a
// table that is searched without reading them.
package segment
