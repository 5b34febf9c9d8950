// Package mistake has the errors of a configuration file, each with its place.
package mistake
