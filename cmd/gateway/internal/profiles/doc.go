// Package profiles serves the profiles of the process, and what its flight recorder has.
package profiles
