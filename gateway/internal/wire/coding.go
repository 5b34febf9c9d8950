package wire

import (
	"slices"

	"github.com/watchtide/watchtide/internal/headers"
)

// Coding is a content coding (RFC 9110, section 8.4.1) in which pieces make a body.
type Coding uint8

// The codings.
const (
	Identity Coding = iota // the bytes are sent as they are
	Gzip                   // RFC 1952
	Zstd                   // RFC 8878
)

// codings are the names of the codings in Content-Encoding.
var codings = [...]string{Identity: "", Gzip: "gzip", Zstd: "zstd"}

// String returns the name of the coding in Content-Encoding; that of Identity is empty.
func (c Coding) String() string { return codings[c] }

// PreferredCoding returns which of the offered codings a client prefers, by its headers
// Accept-Encoding; of those that it likes as much, the first one.
func PreferredCoding(accept []string, offered ...Coding) Coding {
	names := make([]string, len(offered))
	for i, c := range offered {
		names[i] = c.String()
	}
	return Coding(slices.Index(codings[:], headers.PreferredCoding(accept, names...)))
}

// Compress makes a piece of a text, which is the concatenation of the slices. A text
// for which compression does not pay is stored.
func (c Coding) Compress(text [][]byte) Piece {
	size := 0
	var sum Sum
	for _, p := range text {
		size += len(p)
		sum = sum.Write(p)
	}
	if size >= worthTrying {
		if out := c.compressed(text); len(out) < size+len(flush) {
			return Piece{Bytes: out, Sum: sum}
		}
	}
	return Piece{Bytes: c.AppendStored(make([]byte, 0, size+StoredExtra), slices.Concat(text...)), Sum: sum}
}

func (c Coding) compressed(text [][]byte) []byte {
	if c == Zstd {
		return zstdFrame(text)
	}
	return deflated(text)
}

// AppendStored appends a piece that holds p as it is.
func (c Coding) AppendStored(dst, p []byte) []byte {
	for part := range slices.Chunk(p, maxStored) {
		dst = append(c.appendStoredHead(dst, len(part)), part...)
	}
	return append(dst, c.storedEnd()...)
}

// Store makes a piece that holds a text as it is, and passes it to write part by
// part, without copying the text. It returns the sum of the text, and the size of the
// piece.
func (c Coding) Store(text [][]byte, write func(part []byte)) (sum Sum, size int) {
	give := func(part []byte) {
		size += len(part)
		write(part)
	}
	for _, p := range text {
		sum = sum.Write(p)
		for part := range slices.Chunk(p, maxStored) {
			give(c.appendStoredHead(nil, len(part)))
			give(part)
		}
	}
	if end := c.storedEnd(); end != "" {
		give([]byte(end))
	}
	return sum, size
}

// appendStoredHead appends the head of n stored bytes, at most maxStored.
func (c Coding) appendStoredHead(dst []byte, n int) []byte {
	if c == Zstd {
		return appendStoredFrameHead(dst, n)
	}
	return appendStoredBlockHead(dst, n)
}

// storedEnd follows stored bytes.
func (c Coding) storedEnd() string {
	if c == Zstd {
		return "" // every frame is complete
	}
	return flush
}

// Head begins a body.
func (c Coding) Head() string {
	if c == Gzip {
		return gzipHead
	}
	return ""
}

// AppendEnd appends the end of a body whose text has the sum. It is empty in zstd: each frame of
// compressed events has a checksum of its own.
func (c Coding) AppendEnd(dst []byte, sum Sum) []byte {
	if c == Gzip {
		return sum.appendGzipEnd(dst)
	}
	return dst
}
