// Package wire writes streams and answers: the choice of the format of a stream, and
// the writers of a response, through net/http or in chunks of its own.
//
// It assembles gzip streams (RFC 1952) from pieces that are compressed once and sent to many clients.
// A [Piece] is a few deflate blocks (RFC 1951) that refer to nothing before them and end on a byte
// boundary, so that any piece may follow any other. A stream is Head, pieces, and the end that its Sum
// makes.
package wire
