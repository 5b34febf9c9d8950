package h2

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
)

// newStream returns a stream that the client opens. ended says that the request has no body.
func newStream(c *conn, id uint32, ended bool) *Stream {
	st := &Stream{conn: c, id: id, window: c.initial, gotEnd: ended, handled: &handled{cancel: func() {}}}
	st.changed.L = &c.mu
	st.body = body{stream: st, granted: initialWindow}
	if ended {
		st.body.finish()
	}
	st.body.deadline.passed = func() {
		st.body.late = true
		st.changed.Broadcast()
	}
	st.deadline.passed = st.lateWrite
	return st
}

// newRequest returns the request of a stream. If it is malformed, the error is a http2.StreamError (RFC 9113,
// section 8.1.1).
func (st *Stream) newRequest(f *http2.MetaHeadersFrame) (*http.Request, error) {
	malformed := http2.StreamError{StreamID: st.id, Code: http2.ErrCodeProtocol}
	method, scheme, authority, path := f.PseudoValue("method"), f.PseudoValue("scheme"), f.PseudoValue("authority"), f.PseudoValue("path")
	if method == "" || method == http.MethodConnect || path == "" || scheme != "http" && scheme != "https" || f.PseudoValue("protocol") != "" || strings.Contains(authority, "@") {
		return nil, malformed // also CONNECT, which nothing here needs
	}
	header := make(http.Header, len(f.RegularFields()))
	for _, field := range f.RegularFields() {
		if ofConnection[field.Name] || field.Name == "te" && field.Value != "trailers" {
			return nil, malformed
		}
		header.Add(field.Name, field.Value)
	}
	to, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, malformed
	}
	if authority == "" {
		authority = header.Get("Host")
	}
	header.Del("Host")
	header.Del("Trailer") // nobody reads them
	if cookies := header["Cookie"]; len(cookies) > 1 {
		header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	length, ok := contentLength(header, st.gotEnd)
	if !ok {
		return nil, malformed
	}
	ctx, cancel := context.WithCancel(st.conn.ctx)
	st.cancel = cancel
	r := &http.Request{
		Method: method, URL: to, RequestURI: path, Host: authority, Header: header, ContentLength: length, Body: http.NoBody,
		Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: st.conn.net.RemoteAddr().String(),
	}
	if !st.gotEnd {
		st.body.expected = length
		st.body.asks = httpguts.HeaderValuesContainsToken(header["Expect"], "100-continue")
		r.Body = bodyReader{st}
	}
	if st.body.asks {
		header.Del("Expect")
	}
	return r.WithContext(ctx), nil
}

// ofConnection are the fields that only HTTP/1.1 has (RFC 9113, section 8.2.2).
var ofConnection = map[string]bool{
	"connection": true, "proxy-connection": true, "keep-alive": true, "transfer-encoding": true, "upgrade": true,
}

// contentLength returns how long the body is; -1: it is not known. It returns false if that is malformed.
func contentLength(h http.Header, ended bool) (int64, bool) {
	values := h["Content-Length"]
	switch {
	case len(values) == 0 && ended:
		return 0, true
	case len(values) == 0:
		return -1, true
	case len(values) > 1:
		return 0, false
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil || ended && n != 0 {
		return 0, false
	}
	return int64(n), true
}
