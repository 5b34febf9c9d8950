package rest

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

const (
	// mostBuckets is the most buckets in a request for keys.
	mostBuckets = 100
	// mostKeys is the most keys in an answer.
	mostKeys = 10_000
	// mostRead is the most keys in a request for resources.
	mostRead = 1000
	// readBytes is how many bytes of keys and values are enough for one answer.
	readBytes = 1 << 20
	// indexBytes is what the index of a state takes for a resource while it is made.
	indexBytes = 40
)

// digests returns the routes with which a client finds out what differs between what it has and
// the state with a digest.
func (a *API) digests() map[string]http.HandlerFunc {
	const state = "/v1/watches/{watch}/digests/{digest}"
	return map[string]http.HandlerFunc{
		state:                a.digested("table", nil, nil, a.table),
		state + "/keys":      a.digested("keys", []string{"page_token"}, []string{"bucket"}, a.keys),
		state + "/resources": a.digested("resources", []string{"key_encoding"}, []string{"key"}, a.read),
	}
}

// digestRequest is a request about the state with a digest.
type digestRequest struct {
	part   string // of the state
	query  url.Values
	coding wire.Coding // that the client prefers
	digest digest.Digest
	state  *log.Digested
}

// name is the same for all requests that have the same answer.
func (ask digestRequest) name() string {
	return ask.coding.String() + " " + ask.part + "?" + ask.query.Encode()
}

// digested returns the handler of a route. once and repeated are its parameters, and answer returns
// the JSON of the answer.
func (a *API) digested(part string, once, repeated []string, answer func(digestRequest) ([]byte, error)) http.HandlerFunc {
	parameters := authz.Narrowable(once...)
	parameters.Repeated = append(parameters.Repeated, repeated...)
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.Streams.HasDigests() {
			problem.Write(w, problem.New(http.StatusNotFound, "stream.digest is off at this gateway: no state can be asked for by its digest"))
			return
		}
		query, p := problem.ParseQuery(r.URL.RawQuery, parameters)
		watch, p := a.watchOf(r, p)
		of, p := a.part(r, watch, authz.NarrowingOf(query), p)
		if p != nil {
			problem.WriteForPath(w, r, p)
			return
		}
		d, err := digest.Parse(problem.PathParameter(r, "digest"))
		if err != nil {
			problem.Write(w, problem.BadParameter("digest", "%v", err).OnWatch(of.Name()))
			return
		}
		w.Header().Add("Vary", "Accept-Encoding")
		query = only(query, append(once, repeated...)...) // the others select the state
		a.writeDigested(w, r, of, digestRequest{part: part, query: query, coding: a.codingOf(r, watch), digest: d}, answer)
	}
}

// writeDigested answers. What many clients ask for, who hold the same, is made and compressed once.
func (a *API) writeDigested(w http.ResponseWriter, r *http.Request, part authz.Part, ask digestRequest, render func(digestRequest) ([]byte, error)) {
	ctx, answer := a.Answers.Attach(r.Context(), a.payer(r))
	defer answer.Release()
	opened, err := a.Service.Open(ctx, part)
	if err != nil {
		problem.Write(w, problem.Of(err).OnWatch(part.Name()))
		return
	}
	var ok bool
	if ask.state, ok = opened.Digested(ask.digest); !ok {
		problem.Write(w, gone(part.Name()))
		return
	}
	shared, ok := ask.state.Kept(ask.name())
	if ok {
		err = answer.Reserve(ctx, int64(len(shared.Body)))
	} else {
		shared, err = ask.share(ctx, answer, render)
	}
	if err != nil {
		problem.Write(w, problem.Of(err).OnWatch(part.Name()))
		return
	}
	a.writeShared(w, r, shared, ask.part == "table")
}

// share makes the answer, once there is room for it and a processor to make it, or takes one that another request has made. Requests
// about one state come one after the other, and hold neither while they wait for that.
func (ask digestRequest) share(ctx context.Context, answer *limits.Answer, render func(digestRequest) ([]byte, error)) (shared log.Shared, err error) {
	if err := answer.Await(ctx, ask.state.TakeTurn); err != nil {
		return shared, err
	}
	defer ask.state.EndTurn()
	if shared, ok := ask.state.Kept(ask.name()); ok {
		return shared, answer.Reserve(ctx, int64(len(shared.Body)))
	}
	most := int64(readBytes)
	if !ask.state.Indexed() {
		most += int64(ask.state.Count()) * indexBytes
	}
	encode := func() (s log.Shared, err error) {
		text, err := render(ask)
		body, in := ask.coding.EncodeAnswer(text)
		return log.Shared{Body: body, Coding: in.String(), Size: len(text)}, err
	}
	err = answer.Read(ctx, most, func() (size int64, err error) {
		ok := true
		scanned := answer.Scan(ctx, func() { shared, ok, err = ask.state.Share(ask.name(), encode) })
		switch {
		case scanned != nil:
			return 0, scanned
		case !ok:
			return 0, gone("")
		}
		return int64(len(shared.Body)), err
	})
	return shared, err
}

// writeShared writes an answer. It may be kept by caches if the digest in its address determines it, as it does not where it has revisions.
func (a *API) writeShared(w http.ResponseWriter, r *http.Request, shared log.Shared, determined bool) {
	out := wire.NewAnswerWriter(w, r, a.Streams.WriteTimeout, a.Streams.MinRate, a.Streams.Log)
	defer out.Close()
	h := out.Header()
	if shared.Coding != "" {
		h.Set("Content-Encoding", shared.Coding)
		a.Streams.Metrics.Compressed(shared.Size, len(shared.Body))
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(shared.Body)))
	switch {
	case authz.IdentityOf(r.Context()) != nil:
		h.Set("Cache-Control", "private, no-store")
	case determined:
		h.Set("Cache-Control", "public, max-age=60, immutable")
	default:
		h.Set("Cache-Control", "no-store")
	}
	_, _ = out.Write(shared.Body) // it never fails
}

// gone is the answer to a request about a state that is not kept.
func gone(watch string) *problem.Problem {
	return problem.New(http.StatusGone, "the state with this digest is no longer kept: come back with resume=digest, and verify the state of then").OnWatch(watch)
}

// table answers with the table of the buckets.
func (a *API) table(ask digestRequest) ([]byte, error) {
	table, ok := ask.state.Table()
	if !ok {
		return nil, gone("")
	}
	dst := ask.digest.Append([]byte(`{"digest":"`))
	dst = strconv.AppendInt(append(dst, `","buckets":`...), int64(len(table)), 10)
	dst = base64.StdEncoding.AppendEncode(append(dst, `,"table":"`...), table.Bytes())
	return append(dst, "\"}\n"...), nil
}

// keys answers with the keys of some buckets.
func (a *API) keys(ask digestRequest) ([]byte, error) {
	buckets, from, err := ask.buckets()
	if err != nil {
		return nil, err
	}
	dst := ask.digest.Append([]byte(`{"digest":"`))
	dst = append(dst, `","keys":[`...)
	next := ""
	for left := mostKeys; len(buckets) > 0; buckets, from = buckets[1:], 0 {
		if left == 0 || len(dst) > readBytes {
			next = pageToken(buckets[0], 0)
			break
		}
		if text, n, ok := ask.state.Rendered(buckets[0], keyHashes); ok && from == 0 && n <= left {
			dst = slices.Grow(dst, min(len(buckets)*len(text), readBytes)) // buckets are of about one size
			dst, left = append(dst, text...), left-n
			continue
		}
		keys, more, ok := ask.state.Keys(buckets[0], from, left)
		if !ok {
			return nil, gone("")
		}
		dst = append(dst, keyHashes(keys)...)
		left -= len(keys)
		if more {
			next = pageToken(buckets[0], from+len(keys))
			break
		}
	}
	if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	dst = appendString(append(dst, `],"next_page_token":`...), next)
	return append(dst, "}\n"...), nil
}

// buckets returns the buckets that a request asks for, from where a page token says, and the place
// in the first of them.
func (ask digestRequest) buckets() (buckets []int, from int, err error) {
	named := ask.query["bucket"]
	if len(named) == 0 || len(named) > mostBuckets {
		return nil, 0, problem.BadParameter("bucket", "%d buckets: want 1 to %d, as bucket=0&bucket=7", len(named), mostBuckets)
	}
	most := digest.Buckets(ask.digest.Count)
	for _, text := range named {
		b, err := strconv.Atoi(text)
		if err != nil || b < 0 || b >= most {
			return nil, 0, problem.BadParameter("bucket", "bucket is %q: want a number from 0 to %d", text, most-1)
		}
		buckets = append(buckets, b)
	}
	token := ask.query.Get("page_token")
	if token == "" {
		return buckets, 0, nil
	}
	for i, b := range buckets {
		place, ok := strings.CutPrefix(token, strconv.Itoa(b)+".")
		if from, err := strconv.Atoi(place); ok && err == nil && from >= 0 {
			return buckets[i:], from, nil
		}
	}
	return nil, 0, problem.BadParameter("page_token", "page_token is %q: want the next_page_token of the page before, with the same buckets", token)
}

// pageToken names a place among the keys of a bucket.
func pageToken(bucket, from int) string { return fmt.Sprintf("%d.%d", bucket, from) }

// keyHashes returns the JSON of keys, each followed by a comma.
func keyHashes(keys []log.KeyHash) (dst []byte) {
	for _, k := range keys {
		dst = appendKeyHash(dst, k)
	}
	return dst
}

func appendKeyHash(dst []byte, k log.KeyHash) []byte {
	key, encoding := stream.WireKey(k.Key)
	dst = appendString(append(dst, `{"key":`...), key)
	dst = appendText(dst, "key_encoding", encoding)
	dst = appendRevision(dst, k.Revision)
	dst = append(dst, `,"hash":"`...)
	dst = fmt.Appendf(dst, "%016x", uint64(k.Hash))
	return append(dst, `"},`...)
}

// read answers with resources: those of the first keys that it was asked for, and of how many.
func (a *API) read(ask digestRequest) ([]byte, error) {
	keys := ask.query["key"]
	if len(keys) == 0 || len(keys) > mostRead {
		return nil, problem.BadParameter("key", "%d keys: want 1 to %d, as key=a&key=b", len(keys), mostRead)
	}
	dst := ask.digest.Append([]byte(`{"digest":"`))
	dst = append(dst, `","resources":[`...)
	n := 0
	for ; n < len(keys) && (n == 0 || len(dst) < readBytes); n++ {
		key, err := stream.KeyFromWire(keys[n], ask.query.Get("key_encoding"))
		if err != nil {
			return nil, unary.KeyProblem(keys[n], err)
		}
		r, exists, ok := ask.state.Get(key)
		if !ok {
			return nil, gone("")
		}
		if !exists {
			continue
		}
		if dst[len(dst)-1] == '}' {
			dst = append(dst, ',')
		}
		dst = appendResource(dst, unary.ResourceMessage(r))
	}
	dst = strconv.AppendInt(append(dst, `],"read":`...), int64(n), 10)
	return append(dst, "}\n"...), nil
}
