// Package logging is the log of the command: its level, its format, and the messages of
// gRPC in it.
package logging
