// Package wire writes streams and answers: the choice of the format of a stream, and
// the writers of a response, through net/http or in chunks of its own.
//
// It assembles bodies in gzip (RFC 1952) and zstd (RFC 8878) from pieces that are compressed once and
// sent to many clients. A [Piece] in gzip is a few deflate blocks (RFC 1951) that refer to nothing before
// them and end on a byte boundary; in zstd it is a frame. So any piece may follow any other of its
// [Coding]. A body is the head of the coding, pieces, and the end that its [Sum] makes.
package wire
