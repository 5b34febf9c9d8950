// Package wire writes streams and answers: the formats of a stream, the framing of its
// events, and the writers of a response, through net/http or in chunks of its own.
package wire
