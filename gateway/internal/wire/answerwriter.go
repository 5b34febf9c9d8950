package wire

import (
	"log/slog"
	"net/http"
	"time"
)

// answerPiece is how much of an answer is handed to net/http at once. The client
// must take it within Config.WriteTimeout, and at Config.MinRate.
const answerPiece = 16 << 10

// answerWriter writes the response to a unary request, and ends it if its client does
// not read it. Owned by the goroutine of the request.
type answerWriter struct {
	http.ResponseWriter
	out  *Writer
	rate int64
	log  *slog.Logger
}

// NewAnswerWriter returns a writer that must be closed. The client has timeout for each
// write, and must take rate bytes per second.
func NewAnswerWriter(w http.ResponseWriter, r *http.Request, timeout time.Duration, rate int64, log *slog.Logger) *answerWriter {
	return &answerWriter{ResponseWriter: w, out: NewWriter(w, r, timeout), rate: rate, log: log}
}

// Write implements http.ResponseWriter. It never returns an error: grpc-gateway would
// write one to standard error for each client that disconnects.
func (w *answerWriter) Write(p []byte) (int, error) {
	if w.out.bytes == 0 {
		w.out.KeepPace(w.rate)
	}
	w.out.writePieces(p)
	return len(p), nil
}

// Unwrap lets http.ResponseController find the wrapped writer.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Close writes what net/http still buffers.
func (w *answerWriter) Close() {
	if w.out.bytes > 0 {
		w.out.Flush()
	}
	w.out.pace.Stop()
	if err := w.out.err; err != nil {
		w.log.Debug("answer not taken", "method", w.out.r.Method, "path", w.out.r.URL.Path, "bytes", w.out.bytes, "error", err)
	}
}
