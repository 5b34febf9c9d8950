package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// maxRequestBytes is what an API server takes.
	maxRequestBytes = 3 << 20
	// writeTimeout is how long a server may take for a read or a write of one object.
	writeTimeout = 15 * time.Second
)

// NewWriter returns a writer of the objects that a Source of the same configuration serves. A write
// names the resourceVersion that it replaces. The writer must be closed.
func NewWriter(c Config, logger *slog.Logger) (*adapter.Writer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.FieldSelector != "" {
		return nil, errors.New("kubernetes: a watch with field_selector cannot be writable: only the server knows which objects match; want label_selector")
	}
	c.setDefaults()
	selector, err := labels.Parse(c.LabelSelector)
	if err != nil {
		return nil, err
	}
	return adapter.NewWriter(stream.JSONValues, maxRequestBytes, logger, func(context.Context) (adapter.WriteConn, error) {
		made, err := newClient(&c, func(int64) {})
		if err != nil {
			return nil, adapter.NewFailure(err, "kubernetes: "+err.Error())
		}
		all := objects{client: made, selector: selector}
		if c.Impersonate {
			return &impersonating{all}, nil
		}
		return &all, nil
	}), nil
}

// objects are those of a collection, for writes. It is an adapter.WriteConn.
type objects struct {
	client   *client
	selector labels.Selector
	as       http.Header // in whose name requests are made; nil: in that of the gateway
}

// Close implements [adapter.WriteConn].
func (o *objects) Close() error {
	o.client.close()
	return nil
}

// place is where an object is: its collection, and its own segments of the path.
type place struct{ namespace, name string }

func placeOf(key string) (p place, ok bool) {
	p.name = key
	if namespace, name, cut := strings.Cut(key, "/"); cut {
		p = place{namespace, name}
		if !isSegment(namespace) {
			return p, false
		}
	}
	return p, isSegment(p.name)
}

// isSegment reports whether a name is one segment of a path, however that is written.
func isSegment(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/%")
}

// collection is the path of the objects beside this one.
func (o *objects) collection(p place) string {
	c := groupPath(o.client.config.Group, o.client.config.Version)
	if p.namespace != "" {
		c += "/namespaces/" + p.namespace
	}
	return c + "/" + o.client.config.Resource
}

// Check implements [adapter.WriteConn]. The name, the namespace and the version in an object are those
// of its key and of the watch, and the watch selects it.
func (o *objects) Check(key string, value []byte) error {
	p, ok := placeOf(key)
	if ns := o.client.config.Namespace; !ok || ns != "" && p.namespace != ns {
		want := "the namespace and the name of an object, such as default/web, or the name alone where there is no namespace"
		if ns != "" {
			want = "a name after " + ns + "/, as the watch serves this namespace alone"
		}
		return &stream.InvalidError{What: "key", Got: key, Want: want}
	}
	if value == nil {
		return nil
	}
	object, err := decodeObject(value)
	if err != nil {
		return &stream.InvalidError{What: "value", Got: string(value[:min(len(value), 128)]), Want: err.Error()}
	}
	return o.accepts(p, object)
}

// accepts checks an object for a place.
func (o *objects) accepts(p place, object map[string]any) error {
	meta, _ := object["metadata"].(map[string]any)
	group := strings.TrimPrefix(o.client.config.Group+"/"+o.client.config.Version, "/")
	for _, f := range []struct {
		what string
		got  any
		want string
	}{
		{"apiVersion", object["apiVersion"], group}, {"metadata.name", meta["name"], p.name}, {"metadata.namespace", meta["namespace"], p.namespace},
	} {
		if f.got == nil && f.what == "metadata.namespace" {
			continue // it is that of the path
		}
		if got, ok := f.got.(string); !ok || got != f.want {
			return &stream.InvalidError{What: f.what, Got: fmt.Sprint(f.got), Want: fmt.Sprintf("%q, as the key and the watch say", f.want)}
		}
	}
	if !o.selects(meta) {
		return &stream.InvalidError{What: "metadata.labels", Got: fmt.Sprint(meta["labels"]), Want: fmt.Sprintf("labels that match %q, as the watch serves no others", o.selector)}
	}
	return nil
}

func (o *objects) selects(meta map[string]any) bool {
	set := labels.Set{}
	all, _ := meta["labels"].(map[string]any)
	for name, value := range all {
		set[name], _ = value.(string)
	}
	return o.selector.Matches(set)
}

// Read implements [adapter.WriteConn]. Without a resourceVersion, the server reads from a majority of its store.
func (o *objects) Read(ctx context.Context, key string) (adapter.Stored, error) {
	p, _ := placeOf(key)
	now, err := o.request(ctx, http.MethodGet, o.collection(p)+"/"+p.name, nil, nil)
	if apierrors.IsNotFound(err) {
		return adapter.Stored{}, nil
	}
	if denied := o.denied(key, err); denied != nil {
		return adapter.Stored{}, denied
	}
	if err != nil {
		return adapter.Stored{}, err
	}
	object, err := decodeObject(now.Value)
	if err != nil {
		return adapter.Stored{}, err
	}
	meta, _ := object["metadata"].(map[string]any)
	if !o.selects(meta) {
		return adapter.Stored{}, &stream.InvalidError{What: "key", Got: key, Want: fmt.Sprintf("an object that matches %q, as the watch serves no others", o.selector)}
	}
	return now, nil
}

// Put implements [adapter.WriteConn].
func (o *objects) Put(ctx context.Context, key string, value []byte, over adapter.Stored, validateOnly bool) (adapter.Stored, error) {
	p, _ := placeOf(key)
	object, err := decodeObject(value)
	if err != nil {
		return adapter.Stored{}, adapter.NotWritten(err)
	}
	// What a client wrote there is the version that it has seen, which If-Match is for.
	meta := object["metadata"].(map[string]any)
	delete(meta, "resourceVersion")
	method, to := http.MethodPost, o.collection(p)
	if over.Exists {
		method, to = http.MethodPut, to+"/"+p.name
		meta["resourceVersion"] = strconv.FormatUint(over.Version, 10)
	} else {
		delete(meta, "uid") // of another object
	}
	var query url.Values
	if validateOnly {
		query = url.Values{"dryRun": {"All"}}
	}
	now, err := o.request(ctx, method, to, query, object)
	if !over.Exists && apierrors.IsAlreadyExists(err) || over.Exists && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) {
		return now, adapter.ErrChanged
	}
	return now, o.outcome(key, err)
}

// Delete implements [adapter.WriteConn].
func (o *objects) Delete(ctx context.Context, key string, over adapter.Stored, validateOnly bool) error {
	p, _ := placeOf(key)
	options := map[string]any{
		"apiVersion": "v1", "kind": "DeleteOptions",
		"preconditions": map[string]any{"resourceVersion": strconv.FormatUint(over.Version, 10)},
	}
	if validateOnly {
		options["dryRun"] = []any{"All"} // the server does not read the query where there is a body
	}
	_, err := o.request(ctx, http.MethodDelete, o.collection(p)+"/"+p.name, nil, options)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return adapter.ErrChanged
	}
	return o.outcome(key, err)
}

// outcome classifies the error of a write.
func (o *objects) outcome(key string, err error) error {
	var status apierrors.APIStatus
	denied := o.denied(key, err)
	switch {
	case err == nil:
		return nil
	case denied != nil:
		return adapter.NotWritten(denied)
	case !errors.As(err, &status):
		return err
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err), apierrors.IsRequestEntityTooLargeError(err):
		return adapter.NotWritten(&stream.RejectedError{Key: key, Reason: o.client.sent.hide(status.Status().Message)})
	case status.Status().Code/100 == 4 && status.Status().Code != http.StatusRequestTimeout:
		return adapter.NotWritten(err)
	}
	return err
}

// request makes a request and returns the object in the answer, which has none after a delete.
func (o *objects) request(ctx context.Context, method, to string, query url.Values, object map[string]any) (now adapter.Stored, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, writeTimeout, fmt.Errorf("%w: no answer within %v", stream.ErrStalled, writeTimeout))
	defer cancel()
	var body []byte
	if object != nil {
		if body, err = encodeObject(object); err != nil {
			return now, err
		}
	}
	answer, err := o.client.sendWith(ctx, method, to, query, o.as, body)
	if err != nil {
		return now, o.failed(method, err)
	}
	defer answer.Close()
	raw, err := io.ReadAll(io.LimitReader(answer, o.client.config.maxObject))
	switch {
	case err != nil:
		return now, o.failed(method, because(ctx, err))
	case method == http.MethodDelete:
		return now, nil
	}
	r, version, err := parseAnyObject(raw, typeMeta{})
	if err == nil && (version != "" || query == nil) { // an object that is only validated may have none
		r.Revision, err = parseRevision(version)
	}
	if err != nil {
		return now, o.failed(method, err)
	}
	return adapter.Stored{Exists: true, Value: r.Value, Revision: r.Revision, Version: r.Revision}, nil
}

// failed adds the upstream and a hint to an error.
func (o *objects) failed(method string, err error) error {
	c := o.client
	hint := hint(err)
	if apierrors.IsForbidden(err) {
		verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}[method]
		hint = "; want a role that may " + verb + " it"
		if o.as != nil {
			hint = "; want a role that may impersonate users and groups, and serviceaccounts if they write"
		}
	}
	return adapter.NewFailure(err, fmt.Sprintf("kubernetes %s%s, %s: %s%s",
		c.base.Redacted(), adapter.Through(c.proxy(&http.Request{URL: c.base})), c.config.name(), c.sent.hide(err.Error()), hint))
}

// decodeObject decodes an object, of which no two members of one object have the same name: readers
// differ in which of them they take.
func decodeObject(value []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	v, err := decodeValue(d)
	object, ok := v.(map[string]any)
	if err != nil {
		return nil, err
	}
	if _, named := object["metadata"].(map[string]any); !ok || !named {
		return nil, errors.New("a JSON object with metadata")
	}
	return object, nil
}

// decodeValue decodes the next value. The depth of the text is bounded by json.Valid before.
func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			if _, repeated := object[name.(string)]; repeated {
				return nil, fmt.Errorf("each name once in an object, not %.40q twice", name)
			}
			if object[name.(string)], err = decodeValue(d); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}

func encodeObject(object map[string]any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(object)
	return b.Bytes(), err
}
