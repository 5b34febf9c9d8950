package doctor

import (
	"context"
)

const dontCompress = "leave answers of the type text/event-stream, which have Cache-Control: no-transform, out of the compression of the proxy: the gateway compresses by itself"

// checkCompression examines who compresses a stream that a browser asks for.
func (e *Examination) checkCompression(ctx context.Context) {
	const browsers = "gzip, deflate, br, zstd"
	g := e.greet(ctx, ask{encoding: browsers})
	defer g.close()
	coding := g.coding()
	switch {
	case coding != "" && coding != "gzip":
		e.problem(ctx, Compression, dontCompress, "a proxy compresses streams, with %q", shortened(coding))
	case g.err != nil:
		e.unknown(ctx, Compression, "a stream that may be compressed does not begin: %s", because(g.err))
	case e.slow(g):
		e.problem(ctx, Compression, dontCompress, "a compressed stream is held back: hello did not come at once, as it does without compression")
	case coding == "":
		e.ok(ctx, Compression, "streams are not compressed")
	case g.stream.system != gatewaySystem:
		e.problem(ctx, Compression, dontCompress, "a proxy compresses streams, with gzip")
	default:
		e.ok(ctx, Compression, "gzip, by the gateway")
	}
}
