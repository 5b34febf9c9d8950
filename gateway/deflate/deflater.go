package deflate

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/flate"
)

// level of github.com/klauspost/compress/flate. docs/performance.md has what the
// others cost and bring: beyond this one a text of 64 KiB costs twice as much, for a
// tenth less bytes at best.
const level = 3

// worthTrying is how long a text must be to be compressed: what is shorter gets
// longer at this level.
const worthTrying = 128

// deflater is a compressor between two uses.
type deflater struct {
	out bytes.Buffer
	w   *flate.Writer
}

// deflaters holds them between uses: one has half a MiB of tables.
var deflaters = sync.Pool{New: func() any {
	d := new(deflater)
	w, err := flate.NewWriter(&d.out, level)
	if err != nil {
		panic("deflate: " + err.Error())
	}
	d.w = w
	return d
}}

// deflated returns a text in deflate blocks that refer to nothing before them, and
// end with an empty stored one.
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
