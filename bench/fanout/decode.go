package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
)

// decode returns the body of a response that was recorded as received.
func decode(response []byte) ([]byte, error) {
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(response)), nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body := io.Reader(res.Body)
	if res.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(res.Body); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(body)
}
