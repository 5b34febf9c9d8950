package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
)

const (
	// reviewTimeout is how long a server may take for a review.
	reviewTimeout = 5 * time.Second
	// maxReview is how many bytes the answer to a review may have.
	maxReview = 1 << 20
	// maxNamespacePage is how many bytes a page of namespaces may have, and namespacePage how many
	// namespaces.
	maxNamespacePage = 16 << 20
	namespacePage    = 500
)

// Reviewer asks an API server who a token belongs to, and what somebody may do. It makes its
// connection when it is first used, and again after a failure, so that replaced credentials take effect.
//
// All methods may be called from any goroutine.
type Reviewer struct {
	config Config // static after construction

	mu sync.Mutex
	// Guarded by mu.
	client *client // nil: there is none
	sent   *credentials
	closed bool
}

// NewReviewer returns a reviewer that asks the API server of a source. The objects of c are not used.
// The reviewer must be closed.
func NewReviewer(c Config) (*Reviewer, error) {
	var err error
	c.Validate(func(_ any, problem string) { err = errors.New("kubernetes: " + problem) })
	if err != nil {
		return nil, err
	}
	c.setDefaults()
	c.maxObject = maxReview
	return &Reviewer{config: c}, nil
}

// Close closes the connection.
func (r *Reviewer) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.client != nil {
		r.client.close()
		r.client = nil
	}
}

// User is how a cluster knows somebody.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// TokenReview is what a cluster says of a token.
type TokenReview struct {
	Authenticated bool
	User          User
	// Audiences are those of the question that the token is for. A server that does not know
	// audiences names none.
	Audiences []string
}

// tokenReview is an object of the API group authentication.k8s.io.
type tokenReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Token     string   `json:"token"`
		Audiences []string `json:"audiences,omitempty"`
	} `json:"spec"`
	Status *struct {
		Authenticated bool     `json:"authenticated"`
		Audiences     []string `json:"audiences"`
		Error         string   `json:"error"`
		User          struct {
			Username string              `json:"username"`
			UID      string              `json:"uid"`
			Groups   []string            `json:"groups"`
			Extra    map[string][]string `json:"extra"`
		} `json:"user"`
	} `json:"status,omitempty"`
}

// ReviewToken asks who a token belongs to. The error says why there is no answer; it never has the
// token.
func (r *Reviewer) ReviewToken(ctx context.Context, token string, audiences []string) (TokenReview, error) {
	const path = "/apis/authentication.k8s.io/v1/tokenreviews"
	ask := tokenReview{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	ask.Spec.Token, ask.Spec.Audiences = token, audiences
	var got tokenReview
	err := r.review(ctx, path, &ask, &got, token)
	switch {
	case err != nil:
		return TokenReview{}, err
	case got.Kind != ask.Kind || got.Status == nil || got.Spec.Token != "" && got.Spec.Token != token:
		return TokenReview{}, r.failed(path, invalid("the answer is not about the token"), token)
	case got.Status.Error != "" && got.Status.Authenticated:
		return TokenReview{}, r.failed(path, invalid("the answer says that the token is authenticated, and that it could not be checked: %s", got.Status.Error), token)
	}
	u := got.Status.User
	return TokenReview{
		Authenticated: got.Status.Authenticated, Audiences: got.Status.Audiences,
		User: User{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: u.Extra},
	}, nil
}

// Attributes are what somebody may do or not: a verb, on all objects of a resource in a namespace, or
// if that is empty, in all namespaces.
type Attributes struct {
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
}

// accessReview is an object of the API group authorization.k8s.io.
type accessReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Attributes Attributes          `json:"resourceAttributes"`
		User       string              `json:"user"`
		UID        string              `json:"uid,omitempty"`
		Groups     []string            `json:"groups,omitempty"`
		Extra      map[string][]string `json:"extra,omitempty"`
	} `json:"spec"`
	Status *struct {
		Allowed bool `json:"allowed"`
		Denied  bool `json:"denied"`
	} `json:"status,omitempty"`
}

// ReviewAccess asks whether a user may do something. The error says why there is no answer.
func (r *Reviewer) ReviewAccess(ctx context.Context, u User, a Attributes) (allowed bool, err error) {
	const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	ask := accessReview{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
	ask.Spec.Attributes, ask.Spec.User, ask.Spec.UID, ask.Spec.Groups, ask.Spec.Extra = a, u.Name, u.UID, u.Groups, u.Extra
	var got accessReview
	if err := r.review(ctx, path, &ask, &got); err != nil {
		return false, err
	}
	same := got.Kind == ask.Kind && got.Spec.User == u.Name && got.Spec.UID == u.UID && got.Spec.Attributes == a && slices.Equal(got.Spec.Groups, u.Groups)
	if !same || got.Status == nil {
		return false, r.failed(path, invalid("the answer is about somebody or something else than what was asked"))
	}
	return got.Status.Allowed && !got.Status.Denied, nil
}

// Namespaces returns the names of at most that many namespaces, in no order.
func (r *Reviewer) Namespaces(ctx context.Context, most int) (names []string, err error) {
	const path = "/api/v1/namespaces"
	type page struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	for from := ""; ; {
		query := url.Values{"limit": {strconv.Itoa(namespacePage)}}
		if from != "" {
			query.Set("continue", from)
		}
		var got page
		if err := r.request(ctx, http.MethodGet, path, query, nil, maxNamespacePage, &got); err != nil {
			return nil, r.failed(path, err)
		}
		if got.Kind != "NamespaceList" || got.Metadata.Continue != "" && len(got.Items) == 0 {
			return nil, r.failed(path, invalid("the answer is not a list of namespaces"))
		}
		for _, item := range got.Items {
			if name := item.Metadata.Name; name != "" && ValidName(name) && len(names) < most {
				names = append(names, name)
			}
		}
		if from = got.Metadata.Continue; from == "" || len(names) == most {
			return names, nil
		}
	}
}

// review posts a review and reads the answer. secrets are not in the error.
func (r *Reviewer) review(ctx context.Context, path string, ask, into any, secrets ...string) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	if err := r.request(ctx, http.MethodPost, path, nil, body, maxReview, into); err != nil {
		return r.failed(path, err, secrets...)
	}
	return nil
}

// request makes a request and decodes the answer. After a failure that new credentials or a new
// connection could mend, the next request makes a connection of its own.
func (r *Reviewer) request(ctx context.Context, method, path string, query url.Values, body []byte, most int64, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reviewTimeout, fmt.Errorf("%w: no answer within %v", stream.ErrStalled, reviewTimeout))
	defer cancel()
	c, err := r.connect()
	if err != nil {
		return err
	}
	answer, err := c.send(ctx, method, path, query, body)
	if err != nil {
		answered := errors.As(err, new(apierrors.APIStatus))
		if !answered && context.Cause(ctx) == nil || apierrors.IsUnauthorized(err) {
			r.drop(c)
		}
		return err
	}
	defer answer.Close()
	raw, err := io.ReadAll(io.LimitReader(answer, most+1))
	switch {
	case err != nil:
		return because(ctx, err)
	case int64(len(raw)) > most:
		return invalid("the answer has more than %d bytes", most)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return invalid("the answer is not what Kubernetes answers: %v", err)
	}
	return nil
}

// connect returns the client, which it makes if there is none.
func (r *Reviewer) connect() (*client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.client == nil {
		made, err := newClient(&r.config, func(int64) {})
		if err != nil {
			return nil, err
		}
		r.client, r.sent = made, made.sent
	}
	return r.client, nil
}

// drop gives up a client, unless another one has taken its place. Its requests that wait end with it,
// and are made again.
func (r *Reviewer) drop(c *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == c {
		r.client = nil
		c.close()
	}
}

// BusyError is the error of a server that wants to be left alone for some time.
type BusyError struct {
	after time.Duration
	err   error
}

// RetryAfter returns when the server wants to be asked again; 0: it does not say.
func (e *BusyError) RetryAfter() time.Duration { return e.after }

// Error returns what the server said.
func (e *BusyError) Error() string { return e.err.Error() }

// failed adds the request and a hint to an error, and hides secrets.
func (r *Reviewer) failed(path string, err error, secrets ...string) error {
	text := err.Error()
	r.mu.Lock()
	if r.sent != nil {
		text = r.sent.hide(text)
	}
	r.mu.Unlock()
	text = shorten(adapter.HideSecret(text, slices.Values(secrets)))
	hint := hint(err)
	if apierrors.IsForbidden(err) {
		verb := "create"
		if path == "/api/v1/namespaces" {
			verb = "list"
		}
		hint = "; want a cluster role that may " + verb + " " + path[strings.LastIndexByte(path, '/')+1:]
	}
	failure := fmt.Errorf("kubernetes: %s: %s%s", path, text, hint)
	if after, busy := apierrors.SuggestsClientDelay(err); busy || apierrors.IsTooManyRequests(err) {
		return &BusyError{time.Duration(after) * time.Second, failure}
	}
	return failure
}
