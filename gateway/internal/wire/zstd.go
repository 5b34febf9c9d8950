package wire

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A piece in zstd is one frame or several (RFC 8878, section 3.1). Frames know nothing of one
// another, and a decoder takes any number of them in a row.

// zstdMagic begins a frame.
const zstdMagic = "\x28\xb5\x2f\xfd"

// appendStoredFrameHead appends the head of a frame of n bytes as they are: its size, in one byte
// or two, and one raw block.
func appendStoredFrameHead(dst []byte, n int) []byte {
	const (
		single   = 1 << 5 // the window is as large as the content
		twoBytes = 1 << 6 // in the field of the size
		last     = 1      // block
	)
	dst = append(dst, zstdMagic...)
	if n < 256 {
		dst = append(dst, single, byte(n))
	} else {
		dst = binary.LittleEndian.AppendUint16(append(dst, single|twoBytes), uint16(n-256))
	}
	block := n<<3 | last
	return append(dst, byte(block), byte(block>>8), byte(block>>16))
}

// zstdLevel is the level of compression; docs/performance.md has the costs and gains of the others.
const zstdLevel = zstd.SpeedFastest

// zstdWindow is the most memory that a decoder needs for a frame, except for one that is shorter.
const zstdWindow = 256 << 10

// zstdEncoder compresses as many texts at the same time as there are processors; any more wait. So
// this is how many tables there are, of half a MiB each.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel), zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("zstd: " + err.Error())
	}
	return e
})

// zstdBuffers are the buffers of a compression.
type zstdBuffers struct{ text, frame []byte }

var zstdBuffersPool = sync.Pool{New: func() any { return new(zstdBuffers) }}

// zstdFrame returns a text as one frame, with its checksum.
func zstdFrame(text [][]byte) []byte {
	b := zstdBuffersPool.Get().(*zstdBuffers)
	defer zstdBuffersPool.Put(b)
	all := text[0]
	if len(text) > 1 {
		b.text = b.text[:0]
		for _, p := range text {
			b.text = append(b.text, p...)
		}
		all = b.text
	}
	b.frame = zstdEncoder().EncodeAll(all, b.frame[:0])
	return bytes.Clone(b.frame)
}
