// Package superseded records how many bytes of a log were superseded when.
package superseded
