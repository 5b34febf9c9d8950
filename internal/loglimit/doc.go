// Package loglimit bounds how many lines a logger writes, for events that clients cause.
package loglimit
