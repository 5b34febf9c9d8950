package rest

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/views"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/protobuf/proto"
)

// Deps are the parts of the gateway that the routes use.
//
// Static after construction.
type Deps struct {
	Streams *session.Deps // of the long polls, which are streams
	Service *unary.Service
	Proxies limits.Proxies
	Answers *limits.Answers
	Bodies  *limits.Bodies
	// Lists has pieces of compressed lists.
	Lists *wire.Cache
	// Coding returns the coding of an answer about watches, for a client that prefers one.
	Coding func(r *http.Request, preferred wire.Coding, watches ...authz.Handle) wire.Coding
	// Authenticator makes sessions and tickets; nil: the gateway does not ask for credentials,
	// and there are neither.
	Authenticator *credential.Authenticator
}

// API serves the requests that are answered as a whole: the unary API and the
// long poll.
//
// All methods may be called from any goroutine.
type API struct {
	// Static after construction.
	Deps
	mux *runtime.ServeMux
}

// New returns the routes of the unary API and the long poll.
func New(d Deps) *API {
	return &API{Deps: d, mux: newMux(d.Service, d.Streams.Log)}
}

// Route adds the routes of the unary API: the methods of WatchService over HTTP, called
// in this process through grpc-gateway.
//
// Each route has a front that checks the request (parameters, conditions, body, key)
// and hands a canonical one to grpc-gateway. Nothing that a client sent reaches
// grpc-gateway unchecked, and no header reaches it at all, so that it forwards none
// that belongs to a connection.
func (a *API) Route(r chi.Router) {
	r.Get("/v1/watches", a.listWatches)
	r.Head("/v1/watches", a.listWatches)
	r.Get("/v1/watches/{watch}", a.getWatch)
	r.Head("/v1/watches/{watch}", a.getWatch)
	r.Get("/v1/watches/{watch}/resources", a.listResources)
	r.Head("/v1/watches/{watch}/resources", a.listResources)
	r.Get("/v1/watches/{watch}/counts", a.listCounts)
	r.Head("/v1/watches/{watch}/counts", a.listCounts)
	for path, answer := range a.digests() {
		r.Get(path, answer)
		r.Head(path, answer)
	}
	r.Get("/v1/watches/{watch}/resources/*", a.getResource)
	r.Head("/v1/watches/{watch}/resources/*", a.getResource)
	r.Put("/v1/watches/{watch}/resources/*", a.putResource)
	r.Delete("/v1/watches/{watch}/resources/*", a.deleteResource)
}

// newMux returns grpc-gateway, configured to follow the contract.
func newMux(s *unary.Service, log *slog.Logger) *runtime.ServeMux {
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler{}),
		runtime.WithErrorHandler(unaryError(log)),
		runtime.WithForwardResponseOption(responseHeaders),
		runtime.WithIncomingHeaderMatcher(noHeader),
		runtime.WithOutgoingHeaderMatcher(noHeader),
		runtime.WithOutgoingTrailerMatcher(noHeader),
		runtime.WithDisableHTTPMethodOverride(),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithWriteContentLength(),
	)
	// It keeps the context only for connections, and has none here.
	if err := api.RegisterWatchServiceHandlerServer(context.Background(), mux, s); err != nil {
		panic(err) // never: the generated code returns nil
	}
	return mux
}

func noHeader(string) (string, bool) { return "", false }

// unaryError turns an error of the service into a problem, and logs an internal one.
func unaryError(log *slog.Logger) runtime.ErrorHandlerFunc {
	return func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
		p := problem.Of(err)
		if p.Status == http.StatusInternalServerError {
			log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		problem.Write(w, p)
	}
}

// responseHeaders sets the response headers that derive from the message.
func responseHeaders(ctx context.Context, w http.ResponseWriter, m proto.Message) error {
	setCacheControl(ctx, w.Header())
	setTag(ctx, w.Header(), m)
	if put, ok := m.(*api.PutResourceResponse); ok && put.GetCreated() {
		w.WriteHeader(http.StatusCreated)
	}
	return nil
}

// setTag sets the ETag of the answer, if it has one.
func setTag(ctx context.Context, h http.Header, m proto.Message) {
	tag := unary.TagOf(ctx)
	if tag == "" {
		return
	}
	if _, list := m.(*api.ListResourcesResponse); list {
		h.Set("ETag", listTag(tag))
		return
	}
	h.Set("ETag", quote(tag))
}

// listTag returns the ETag of a list from the tag of its state. It is weak: a later position is
// sent with the same resources.
func listTag(state string) string { return "W/" + quote(state) }

// setCacheControl allows only the cache of the client to store an answer, and only if it
// revalidates it before use. An answer for a principal must not be stored at all.
func setCacheControl(ctx context.Context, h http.Header) {
	if authz.IdentityOf(ctx) != nil {
		h.Set("Cache-Control", "private, no-store")
		return
	}
	h.Set("Cache-Control", "private, no-cache")
}

// pass hands a checked request to grpc-gateway, and sends the answer as it is.
func (a *API) pass(w http.ResponseWriter, r *http.Request, path string, query url.Values, body *valueBody) {
	a.passIn(wire.Identity, w, r, path, query, body)
}

// passIn hands a checked request to grpc-gateway, and sends the answer in a coding. It rebuilds the path and the query,
// since grpc-gateway would split a path at an encoded slash and reinterpret the
// query. body may be nil.
func (a *API) passIn(coding wire.Coding, w http.ResponseWriter, r *http.Request, path string, query url.Values, body *valueBody) {
	ctx, answer := a.Answers.Attach(r.Context(), a.payer(r))
	defer answer.Release()
	out := wire.NewAnswerWriter(w, r, a.Streams.WriteTimeout, a.Streams.MinRate, a.Streams.Log).
		Coded(coding, a.Lists, func(compress func()) error { return answer.Scan(ctx, compress) })
	defer func() {
		out.Close()
		a.Streams.Metrics.Compressed(out.Compressed())
	}()
	call := r.Clone(unary.WithTag(ctx))
	call.URL = &url.URL{Path: path, RawQuery: query.Encode()}
	call.Header = http.Header{}
	if r.Method == http.MethodHead {
		call.Method = http.MethodGet
	}
	if body != nil {
		call.Body = body
	}
	call.Form, call.PostForm = query, url.Values{} // ParseForm would read the body of a PUT
	a.mux.ServeHTTP(out, call)
}

// payer returns the client to which the memory and the processors that a request uses are
// charged.
func (a *API) payer(r *http.Request) limits.Client {
	return limits.Payer(authz.IdentityOf(r.Context()), a.Proxies.ClientOfRequest(r))
}

func (a *API) listWatches(w http.ResponseWriter, r *http.Request) {
	query, p := problem.Query(r)
	if p != nil {
		problem.Write(w, p)
		return
	}
	a.pass(w, r, "/v1/watches", query, nil)
}

func (a *API) getWatch(w http.ResponseWriter, r *http.Request) {
	query, p := problem.Query(r)
	watch, p := a.watchOf(r, p)
	if p != nil {
		problem.WriteForPath(w, r, p)
		return
	}
	a.pass(w, r, "/v1/watches/"+watch.Name(), query, nil)
}

func (a *API) listResources(w http.ResponseWriter, r *http.Request) {
	query, p := problem.ParseQuery(r.URL.RawQuery, authz.CountedAt("/v1/watches/{watch}/counts", authz.Windowable("page_size", "page_token")))
	a.list(w, r, query, authz.WindowOf(query), p)
}

// listCounts lists the groups of a count as resources are listed.
func (a *API) listCounts(w http.ResponseWriter, r *http.Request) {
	query, p := problem.ParseQuery(r.URL.RawQuery, authz.Countable("page_size", "page_token"))
	a.list(w, r, query, authz.CountingOf(query), p)
}

// list answers with a list of what n selects, unless there is already a problem.
func (a *API) list(w http.ResponseWriter, r *http.Request, query url.Values, n authz.Narrowing, p *problem.Problem) {
	var size uint64
	if p == nil {
		size, p = problem.Uint(query, "page_size", unary.MaxPageSize)
	}
	watch, p := a.watchOf(r, p)
	part, p := a.part(r, watch, n, p)
	if p != nil {
		problem.WriteForPath(w, r, p)
		return
	}
	w.Header().Add("Vary", "Accept-Encoding")
	if query.Get("page_token") == "" && !part.IsWindow() && a.unchanged(w, r, part, int(cmp.Or(size, unary.DefaultPageSize))) {
		return
	}
	r = r.WithContext(unary.WithPart(r.Context(), part))
	a.passIn(a.codingOf(r, watch), w, r, "/v1/watches/"+watch.Name()+"/resources", only(query, "page_size", "page_token"), nil)
}

// codingOf returns the coding of a list. A list for somebody with a credential is never compressed,
// whoever reads the credential: this gateway, or a proxy before it.
func (a *API) codingOf(r *http.Request, watch authz.Handle) wire.Coding {
	certified := r.TLS != nil && len(r.TLS.PeerCertificates) > 0
	if certified || authz.IdentityOf(r.Context()) != nil || r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
		return wire.Identity
	}
	return a.Coding(r, wire.PreferredCoding(r.Header.Values("Accept-Encoding"), wire.Zstd, wire.Gzip), watch)
}

// part returns the part of a watch that a request selects, unless there is already a problem.
func (a *API) part(r *http.Request, w authz.Handle, n authz.Narrowing, before *problem.Problem) (authz.Part, *problem.Problem) {
	if before != nil {
		return authz.Part{}, before
	}
	return w.Narrow(r.Context(), n, a.Proxies.ClientOfRequest(r).String())
}

// only returns some of the parameters.
func only(query url.Values, names ...string) url.Values {
	out := url.Values{}
	for _, name := range names {
		if query.Has(name) {
			out[name] = query[name]
		}
	}
	return out
}

// unchanged answers a request with If-None-Match if there is no list to answer with: 304 if the
// caller has the newest state already, or a refusal. Pages after the first belong to a revision
// of their own and are always answered. So is a list of several pages where deletes have no
// revision, since its page tokens are those of one position. If the view cannot be opened, the
// list itself is refused.
func (a *API) unchanged(w http.ResponseWriter, r *http.Request, of authz.Part, size int) bool {
	known := r.Header.Values("If-None-Match")
	if len(known) == 0 {
		return false
	}
	if of.ByKeys() {
		ctx, answer := a.Answers.Attach(r.Context(), a.payer(r))
		defer answer.Release()
		page, ok, err := a.Service.PageByKeys(ctx, of, size)
		if err != nil {
			problem.WriteForPath(w, r, problem.Of(err))
			return true
		}
		if ok {
			return notModified(w, r, known, listTag(page.Tag))
		}
	}
	part, err := of.Open(views.Request{Client: a.Proxies.ClientOfRequest(r).String()})
	if err != nil {
		return false
	}
	if p := a.Service.Lookup.Prime(r.Context(), part); p != nil {
		problem.WriteForPath(w, r, p)
		return true
	}
	v := part.Snapshot()
	if !v.Primed() || !v.FitsPage(size) && strings.HasPrefix(v.Epoch(), stream.UnnumberedEpoch) {
		return false
	}
	return notModified(w, r, known, listTag(v.Tag()))
}

// notModified answers 304 if the caller knows the tag of what it asks for.
func notModified(w http.ResponseWriter, r *http.Request, known []string, tag string) bool {
	if !tagMatches(known, tag) {
		return false
	}
	w.Header().Set("ETag", tag)
	setCacheControl(r.Context(), w.Header())
	w.WriteHeader(http.StatusNotModified)
	return true
}

// watchOf returns the watch that the path names, unless there is already a problem.
func (a *API) watchOf(r *http.Request, before *problem.Problem) (authz.Handle, *problem.Problem) {
	if before != nil {
		return authz.Handle{}, before
	}
	return a.Service.Lookup.Find(r.Context(), problem.PathParameter(r, "watch"), a.Proxies.ClientOfRequest(r).String())
}
