package gateway

import (
	"compress/gzip"
	"io"
	"net/http"
)

// unzip makes the body of a response readable. The body ends without an error only if
// its checksum and its length are right, and nothing follows.
func unzip(res *http.Response) {
	if res.Header.Get("Content-Encoding") == "gzip" {
		res.Body = &unzippedBody{ReadCloser: res.Body}
	}
}

// unzippedBody decompresses what it reads, as it arrives.
type unzippedBody struct {
	io.ReadCloser
	r *gzip.Reader // nil: nothing was read yet
}

// Read implements io.Reader.
func (b *unzippedBody) Read(p []byte) (n int, err error) {
	if b.r == nil {
		if b.r, err = gzip.NewReader(b.ReadCloser); err != nil {
			return 0, err
		}
	}
	return b.r.Read(p)
}
