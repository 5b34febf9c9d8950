package gateway

import "strconv"

// lastChunk ends a chunked body (RFC 9112, section 7.1).
const lastChunk = "0\r\n\r\n"

// appendChunkHead appends the head of a chunk of n bytes.
func appendChunkHead(dst []byte, n int) []byte {
	return append(strconv.AppendUint(dst, uint64(n), 16), "\r\n"...)
}

var chunkEnd = []byte("\r\n")
