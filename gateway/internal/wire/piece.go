package wire

import (
	"encoding/binary"
	"slices"
)

// Piece is a part of a gzip stream. It is complete: a client can read all of it
// before anything follows. Static after construction.
type Piece struct {
	Bytes []byte // the bytes to send
	Sum   Sum    // of the uncompressed text
}

// flush is an empty stored block. Every piece ends with one, for two reasons: it ends
// on a byte boundary, and some readers (Go's compress/flate among them) return the
// data they have only when they reach one.
const flush = "\x00\x00\x00\xff\xff"

// maxStored is the most that a stored block can hold.
const maxStored = 1<<16 - 1

// StoredExtra is how many bytes longer a stored piece of up to 64 KiB is than its
// content.
const StoredExtra = 10

// AppendStored appends a piece that holds p as it is.
func AppendStored(dst, p []byte) []byte {
	for len(p) > 0 {
		n := min(len(p), maxStored)
		dst = append(appendStoredHead(dst, n), p[:n]...)
		p = p[n:]
	}
	return append(dst, flush...)
}

// appendStoredHead appends the head of n stored bytes.
func appendStoredHead(dst []byte, n int) []byte {
	dst = append(dst, 0) // not the last one, stored
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	return binary.LittleEndian.AppendUint16(dst, ^uint16(n))
}

// Store makes a piece that holds a text as it is, and passes it to write part by
// part, without copying the text. It returns the sum of the text, and the size of the
// piece.
func Store(text [][]byte, write func(part []byte)) (sum Sum, size int) {
	give := func(part []byte) {
		size += len(part)
		write(part)
	}
	for _, p := range text {
		sum = sum.Write(p)
		for len(p) > 0 {
			n := min(len(p), maxStored)
			give(appendStoredHead(nil, n))
			give(p[:n])
			p = p[n:]
		}
	}
	give([]byte(flush))
	return sum, size
}

// Compress makes a piece of a text, which is the concatenation of the slices. A text
// for which deflate does not pay is stored.
func Compress(text [][]byte) Piece {
	size := 0
	var sum Sum
	for _, p := range text {
		size += len(p)
		sum = sum.Write(p)
	}
	if size >= worthTrying {
		if out := deflated(text); len(out) < size+len(flush) {
			return Piece{Bytes: out, Sum: sum}
		}
	}
	return Piece{Bytes: AppendStored(make([]byte, 0, size+StoredExtra), slices.Concat(text...)), Sum: sum}
}
