package connect

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// own are the headers that requests set themselves.
var own = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "If-Match", "If-None-Match",
	"Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ParseHeaders reads headers, each as "Name: value", and returns the values by name. Errors
// do not contain values, which may be secrets.
func ParseHeaders(lines []string) (map[string]string, error) {
	out := map[string]string{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, errors.New(`--header: want "Name: value"`)
		}
		name, value = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("header %s is given twice", name)
		}
		out[name] = value
	}
	return out, nil
}

func checkHeader(name, value string) error {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("header %q: a name has no such characters", name)
	case !httpguts.ValidHeaderFieldValue(value):
		return fmt.Errorf("header %s: the value has characters that cannot be sent", name)
	case canonical == "Authorization":
		return errors.New("header Authorization: want a token file, which other users of this machine cannot read and which is read again when it changes")
	case slices.Contains(own, canonical):
		return fmt.Errorf("header %s: each request sets it itself", name)
	}
	return nil
}
