package client

import (
	"net/url"
	"strconv"
	"strings"
)

// View says which part of a watch is wanted. The zero value is all of it. The server
// validates it, and refuses a mistake with a *Problem that says where it is.
//
// A position belongs to one View: under another one the server answers it with a reset.
// So what was received under one View must not be continued under another.
type View struct {
	// Prefix is what the keys begin with.
	Prefix string
	// Keys are the keys that are wanted, at most 1,000. None: all.
	Keys []string
	// Labels is a label selector in the syntax of Kubernetes, such as app=web,!legacy.
	Labels string
	// Filter is an expression in CEL over key, value, labels and revision.
	Filter string
	// Fields are the paths of the values to keep. Each element is a path, or several with
	// commas between them. None: the values are whole.
	Fields []string
	// Order makes it a window: the resources are sorted by these paths, with commas between them
	// and a minus before those in descending order, and it has Limit of them, 1 to 1,000, after the
	// first Offset. An Order without a Limit is a mistake, and so are Limit, Offset and After without an
	// Order.
	Order         string
	Limit, Offset int
	// After, in place of Offset, is a Next that was received for the same Order: the window begins
	// behind the place that it names, whatever becomes of the resource that was there.
	After string
}

// AddTo adds the parameters of the view to a query. watch is the name of the watch in a
// request that may be for several; empty if the path of the request names the watch.
func (v View) AddTo(query url.Values, watch string) {
	suffix := ""
	if watch != "" {
		suffix = "." + watch
	}
	for _, parameter := range []struct{ name, text string }{
		{"prefix", v.Prefix}, {"keys", listOf(v.Keys)}, {"labels", v.Labels}, {"filter", v.Filter}, {"fields", strings.Join(v.Fields, ",")},
		{"order", v.Order}, {"limit", decimal(v.Limit)}, {"offset", decimal(v.Offset)}, {"after", v.After},
	} {
		if parameter.text != "" {
			query.Set(parameter.name+suffix, parameter.text)
		}
	}
}

// listOf returns keys with commas between them. One with a comma or a quotation mark in it is in quotation marks, and
// those in it are doubled.
func listOf(keys []string) string {
	written := make([]string, len(keys))
	for i, key := range keys {
		if written[i] = key; strings.ContainsAny(key, `,"`) {
			written[i] = `"` + strings.ReplaceAll(key, `"`, `""`) + `"`
		}
	}
	return strings.Join(written, ",")
}

// decimal returns a number as a parameter; nothing: 0.
func decimal(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
