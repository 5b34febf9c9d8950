package wire

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/flate"
)

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
