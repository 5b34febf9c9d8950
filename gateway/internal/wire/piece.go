package wire

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Piece is a part of a compressed body. It is complete: a client can read all of it
// before anything follows. Static after construction.
type Piece struct {
	Bytes []byte // the bytes to send
	Sum   Sum    // of the uncompressed text
}

// flush is an empty stored block. Every piece in gzip ends with one, for two reasons: it ends
// on a byte boundary, and some readers (Go's compress/flate among them) return the
// data they have only when they reach one.
const flush = "\x00\x00\x00\xff\xff"

// maxStored is the most that a stored block can hold.
const maxStored = 1<<16 - 1

// StoredExtra is how many bytes longer a stored piece of up to 64 KiB is than its
// content.
const StoredExtra = 10

// appendStoredBlockHead appends the head of n stored bytes.
func appendStoredBlockHead(dst []byte, n int) []byte {
	dst = append(dst, 0) // not the last one, stored
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	return binary.LittleEndian.AppendUint16(dst, ^uint16(n))
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
