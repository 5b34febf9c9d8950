package wire

import "strconv"

// LastChunk ends a chunked body (RFC 9112, section 7.1).
const LastChunk = "0\r\n\r\n"

// AppendChunkHead appends the head of a chunk of n bytes.
func AppendChunkHead(dst []byte, n int) []byte {
	return append(strconv.AppendUint(dst, uint64(n), 16), "\r\n"...)
}

// ChunkEnd ends the data of a chunk (RFC 9112, section 7.1).
var ChunkEnd = []byte("\r\n")

// LengthOf returns the sum of the lengths.
func LengthOf(bs [][]byte) (n int) {
	for _, b := range bs {
		n += len(b)
	}
	return n
}
