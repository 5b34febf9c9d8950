package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/stream"
)

func (a *API) getResource(w http.ResponseWriter, r *http.Request) {
	query, p := problem.ParseQuery(r.URL.RawQuery, authz.Narrowable("key_encoding"))
	call, p := a.resourceCall(r, query, p)
	part, p := a.part(r, call.watch, authz.NarrowingOf(query), p)
	if p != nil {
		problem.WriteForPath(w, r, p)
		return
	}
	w.Header().Set("Allow", allowed(call))
	r = r.WithContext(unary.WithPart(r.Context(), part))
	a.pass(w, r, call.path(), call.query, nil)
}

// allowed returns the methods that the principal may use on a resource. A rule can depend on the
// new value too, so that a PUT may still be refused.
func allowed(c resourceCall) string {
	methods := "GET, HEAD"
	put, deletes := c.watch.Changeable(c.key)
	if put {
		methods += ", PUT"
	}
	if deletes {
		methods += ", DELETE"
	}
	return methods
}

func (a *API) putResource(w http.ResponseWriter, r *http.Request) {
	call, p := a.writeCall(r)
	if p != nil {
		problem.WriteForPath(w, r, p)
		return
	}
	body, p := a.readValue(r, call.watch)
	if p != nil {
		closeUnread(w, r)
		problem.WriteForPath(w, r, p.OnKey(call.key))
		return
	}
	defer body.claim.Release()
	a.pass(w, r, call.path(), call.query, body)
}

func (a *API) deleteResource(w http.ResponseWriter, r *http.Request) {
	call, p := a.writeCall(r)
	if p == nil && r.Header.Get("If-None-Match") != "" {
		p = problem.BadParameter("If-None-Match", "If-None-Match has no meaning for DELETE: want If-Match").OnKey(call.key)
	}
	if p != nil {
		problem.WriteForPath(w, r, p)
		return
	}
	a.pass(w, r, call.path(), call.query, nil)
}

// resourceCall is a request for one resource.
type resourceCall struct {
	watch authz.Handle
	key   string // as the source knows it
	query url.Values
}

// path returns the canonical path of the resource, not encoded.
func (c resourceCall) path() string {
	return "/v1/watches/" + c.watch.Name() + "/resources/" + c.key
}

// resourceCall determines which resource a request is about, unless there is already
// a problem. Any key can be written percent-encoded. A key that is not UTF-8 can also
// be written in base64, with key_encoding=base64, as it appears in events.
func (a *API) resourceCall(r *http.Request, query url.Values, before *problem.Problem) (resourceCall, *problem.Problem) {
	watch, p := a.watchOf(r, before)
	if p != nil {
		return resourceCall{}, p
	}
	wire := problem.PathParameter(r, "*")
	key, err := stream.KeyFromWire(wire, query.Get("key_encoding"))
	if err != nil {
		return resourceCall{}, unary.KeyProblem(wire, err)
	}
	return resourceCall{watch: watch, key: key, query: only(query, "validate_only")}, nil
}

// writeCall reads the parts of a PUT or DELETE other than its body. It returns a 405
// if the watch cannot be written, and a 403 if the credential is not for writing.
func (a *API) writeCall(r *http.Request) (resourceCall, *problem.Problem) {
	query, p := problem.Query(r, "key_encoding", "validate_only")
	if p == nil {
		_, p = problem.Bool(query, "validate_only")
	}
	call, p := a.resourceCall(r, query, p)
	if p != nil {
		return call, p
	}
	if p := unary.CheckWrite(r.Context(), call.watch); p != nil {
		return call, p
	}
	revision, given, p := condition(r.Header)
	if p != nil {
		return call, p.OnKey(call.key)
	}
	if given {
		call.query.Set("if_revision", strconv.FormatUint(revision, 10))
	}
	return call, nil
}

// checkJSON reports where raw stops being JSON in UTF-8 (RFC 8259).
func checkJSON(raw []byte) *problem.Problem {
	if len(bytes.TrimSpace(raw)) == 0 {
		return problem.BadParameter("body", "the body is empty: want a JSON value")
	}
	if !utf8.Valid(raw) {
		at := invalidUTF8(raw)
		line, column := place(raw, at)
		return problem.BadParameter("body", "the body is not UTF-8: byte 0x%02x at line %d, column %d; want JSON, with other bytes in base64 in a string", raw[at], line, column)
	}
	if json.Valid(raw) {
		return nil
	}
	var ignored json.RawMessage
	err := json.Unmarshal(raw, &ignored)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return problem.BadParameter("body", "the body is not JSON: %v", err)
	}
	line, column := place(raw, int(syntax.Offset)-1)
	return problem.BadParameter("body", "the body is not JSON: line %d, column %d: %v", line, column, syntax)
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8.
func invalidUTF8(raw []byte) int {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(raw) - 1
}

// place returns the line and the column, in bytes, of an offset; both start at 1.
func place(raw []byte, offset int) (line, column int) {
	before := raw[:max(0, min(offset, len(raw)))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}
