package h2

import (
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// errBodyClosed means that a body is read after its end.
var errBodyClosed = errors.New("the body of the request is closed")

// errDetached means that a handler writes to a stream that it has detached.
var errDetached = errors.New("the stream is detached")

// response is the answer to a request, as its handler has it. It is what net/http has for HTTP/1.1, without trailers.
//
// Owned by the goroutine of the handler.
type response struct {
	stream  *Stream // static after construction, like the following field
	request *http.Request

	header   http.Header // until the status is known
	said     http.Header // afterwards
	status   int         // 0: it is not known
	length   int64       // bytes of the body; negative: it is not known
	size     int64       // bytes written
	buffer   *[]byte     // what is not sent yet; nil: nothing
	sent     bool        // the header is
	detached bool
}

// responseBytes is how much of an answer is sent at once.
const responseBytes = 4 << 10

// responseBuffers holds the buffers of answers.
var responseBuffers = sync.Pool{New: func() any { b := make([]byte, 0, responseBytes); return &b }}

// handle handles a request.
func (st *Stream) handle(h http.Handler, r *http.Request) {
	defer st.cancel()
	w := &response{stream: st, request: r, header: http.Header{}, length: -1}
	panics := true
	defer func() {
		if panics {
			w.panicked(recover())
		}
		w.finish(panics)
	}()
	h.ServeHTTP(w, r)
	panics = false
}

// panicked logs a panic as net/http does.
func (w *response) panicked(why any) {
	if why == http.ErrAbortHandler || why == nil {
		return
	}
	logf := log.Printf
	if l := w.stream.conn.http.ErrorLog; l != nil {
		logf = l.Printf
	}
	logf("http2: panic serving %s: %v\n%s", w.request.RemoteAddr, why, debug.Stack())
}

// finish ends what the handler has begun: the answer, unless it has detached the stream.
func (w *response) finish(aborted bool) {
	st := w.stream
	if !aborted && !w.detached {
		_ = w.end()
	}
	w.drop()
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	if w.detached {
		return
	}
	st.stop()
	switch {
	case st.failure != nil:
	case aborted, !st.sentEnd:
		st.reset(http2.ErrCodeInternal, errReset)
	case !st.gotEnd: // the rest of the body is of no use (RFC 9113, section 8.1)
		st.resetSoon()
	}
	st.body.fail(errBodyClosed)
	st.deadline.stop()
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	case w.status != 0:
	case status < http.StatusOK:
		w.inform(status)
	default:
		w.status, w.said = status, w.header.Clone()
		if n, err := strconv.ParseInt(w.said.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
			w.length = n
		} else {
			w.said.Del("Content-Length")
		}
	}
}

// inform sends a status before that of the answer.
func (w *response) inform(status int) {
	w.stream.conn.mu.Lock()
	defer w.stream.conn.mu.Unlock()
	w.stream.body.asks = false
	w.stream.appendStatus(status, false, fieldsOf(w.header)...)
}

// appendStatus appends a header of a status. end says that it is the answer, and that no body follows.
func (st *Stream) appendStatus(status int, end bool, fields ...hpack.HeaderField) {
	if st.failure == nil && !st.sentEnd {
		st.conn.appendFields(st, append([]hpack.HeaderField{{Name: ":status", Value: strconv.Itoa(status)}}, fields...), end)
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch w.size += int64(len(p)); {
	case w.detached:
		return 0, errDetached
	case !hasBody(w.status):
		return 0, http.ErrBodyNotAllowed
	case w.length >= 0 && w.size > w.length:
		return 0, http.ErrContentLength
	}
	written := 0
	for {
		if w.buffer == nil {
			w.buffer = responseBuffers.Get().(*[]byte)
		}
		n := min(len(p), responseBytes-len(*w.buffer))
		*w.buffer = append(*w.buffer, p[:n]...)
		if p = p[n:]; len(p) == 0 {
			return written + n, nil
		}
		if err := w.send(false); err != nil {
			return written, err
		}
		written += n
		if whole := len(p) - len(p)%responseBytes; whole > 0 { // without a copy
			if err := w.body(p[:whole], false); err != nil {
				return written, err
			}
			p, written = p[whole:], written+whole
		}
		if len(p) == 0 {
			return written, nil
		}
	}
}

// WriteString implements io.StringWriter.
func (w *response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	if w.detached {
		return errDetached
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.send(false)
}

// SetReadDeadline is for http.ResponseController.
func (w *response) SetReadDeadline(at time.Time) error {
	mu := &w.stream.conn.mu
	mu.Lock()
	defer mu.Unlock()
	if w.detached {
		return errDetached
	}
	w.stream.setReadDeadline(mu, at)
	return nil
}

// SetWriteDeadline is for http.ResponseController. A stream whose deadline passes is reset.
func (w *response) SetWriteDeadline(at time.Time) error {
	mu := &w.stream.conn.mu
	mu.Lock()
	defer mu.Unlock()
	if w.detached {
		return errDetached
	}
	w.stream.deadline.set(mu, at)
	return nil
}

// EnableFullDuplex is for http.ResponseController: HTTP/2 always is.
func (w *response) EnableFullDuplex() error { return nil }

// end sends the rest of the answer, and its end.
func (w *response) end() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.send(true)
}

// send sends the header of the answer, if it was not sent, and what is in the buffer. end says that nothing
// follows.
func (w *response) send(end bool) error {
	defer w.drop()
	var p []byte
	if w.buffer != nil {
		p = *w.buffer
	}
	if w.sent {
		return w.body(p, end)
	}
	bare := !hasBody(w.status) || w.request.Method == http.MethodHead
	w.complete(p, end)
	if err := w.head(end && (bare || len(p) == 0)); err != nil || end && (bare || len(p) == 0) {
		return err
	}
	return w.body(p, end)
}

// complete adds the fields of the header that a handler need not set.
func (w *response) complete(p []byte, end bool) {
	if !hasBody(w.status) {
		return
	}
	_, typed := w.said["Content-Type"]
	if !typed && len(p) > 0 && w.said.Get("Content-Encoding") == "" {
		w.said.Set("Content-Type", http.DetectContentType(p))
	}
	if end && w.length < 0 && (len(p) > 0 || w.request.Method != http.MethodHead) {
		w.said.Set("Content-Length", strconv.Itoa(len(p)))
	}
}

// head sends the header of the answer.
func (w *response) head(end bool) error {
	w.sent = true
	if _, dated := w.said["Date"]; !dated {
		w.said.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	st := w.stream
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	if err := st.awaitOutput(); err != nil {
		return err
	}
	st.body.asks = false
	st.appendStatus(w.status, end, fieldsOf(w.said)...)
	if strings.EqualFold(w.said.Get("Connection"), "close") {
		st.conn.goAway(http2.ErrCodeNo)
	}
	if end {
		st.end()
	}
	return nil
}

// body sends a part of the body.
func (w *response) body(p []byte, end bool) error {
	if w.request.Method == http.MethodHead {
		p = nil
	}
	if end && w.length >= 0 && w.size < w.length && w.request.Method != http.MethodHead {
		return errors.Join(w.stream.write(p, false), http.ErrContentLength) // the stream is reset
	}
	return w.stream.write(p, end)
}

// drop gives the buffer back.
func (w *response) drop() {
	if w.buffer != nil {
		*w.buffer = (*w.buffer)[:0]
		responseBuffers.Put(w.buffer)
		w.buffer = nil
	}
}

// hasBody reports whether an answer of a status has a body (RFC 9110, section 6.4.1).
func hasBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

// fieldsOf returns the fields of a header that HTTP/2 can have, sorted by name.
func fieldsOf(h http.Header) []hpack.HeaderField {
	fields := make([]hpack.HeaderField, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		lower := strings.ToLower(name)
		if ofConnection[lower] || lower == "trailer" || !httpguts.ValidHeaderFieldName(lower) {
			continue
		}
		for _, value := range h[name] {
			if httpguts.ValidHeaderFieldValue(value) {
				fields = append(fields, hpack.HeaderField{Name: lower, Value: value, Sensitive: lower == "set-cookie"})
			}
		}
	}
	return fields
}

// Detach takes the stream from the handler of w, or of what w wraps, and sends the header of its answer, which has a
// status of 200 and no length. It returns nil if that cannot be: w is not of this package, the request has a body that
// did not end, or the answer has begun.
func Detach(w http.ResponseWriter) *Stream {
	for {
		switch of := w.(type) {
		case *response:
			return of.detach()
		case interface{ Unwrap() http.ResponseWriter }:
			w = of.Unwrap()
		default:
			return nil
		}
	}
}

func (w *response) detach() *Stream {
	st := w.stream
	st.conn.mu.Lock()
	ready := st.gotEnd && st.failure == nil && w.status == 0 && !w.detached
	st.conn.mu.Unlock()
	if !ready {
		return nil
	}
	w.WriteHeader(http.StatusOK)
	if err := w.head(false); err != nil {
		return nil // the connection, or the client, has gone
	}
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	if st.failure != nil {
		return nil
	}
	st.deadline.stop()
	st.stop()
	w.detached, st.handled = true, nil
	return st
}
