package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
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

// level is a level of github.com/klauspost/compress/flate. docs/performance.md has
// the costs and gains of the others: beyond this one a text of 64 KiB costs twice as
// much, for at best a tenth fewer bytes.
const level = 3

// worthTrying is how long a text must be to be compressed: a shorter one grows at
// this level.
const worthTrying = 128

// deflater is a compressor between two uses.
type deflater struct {
	out bytes.Buffer
	w   *flate.Writer
}

// deflaters pools compressors: each has half a MiB of tables.
var deflaters = sync.Pool{New: func() any {
	d := new(deflater)
	w, err := flate.NewWriter(&d.out, level)
	if err != nil {
		panic("deflate: " + err.Error())
	}
	d.w = w
	return d
}}

// deflated returns a text in deflate blocks that refer to nothing before them and end
// with an empty stored block.
func deflated(text [][]byte) []byte {
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	d.out.Reset()
	d.w.Reset(&d.out)
	for _, p := range text {
		_, _ = d.w.Write(p) // a buffer takes everything
	}
	_ = d.w.Flush()
	return bytes.Clone(d.out.Bytes())
}
