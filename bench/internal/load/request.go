package load

import "bytes"

// With returns an HTTP/1.1 request with one more header, for instance
// "Last-Event-ID" or "Accept-Encoding".
func With(request []byte, name, value string) []byte {
	head, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	out := append([]byte(nil), head...)
	out = append(out, "\r\n"+name+": "+value+"\r\n\r\n"...)
	return append(out, body...)
}
