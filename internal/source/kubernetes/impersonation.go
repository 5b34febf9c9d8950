package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/transport"
)

const (
	// mostGroups is how many groups are sent of an author.
	mostGroups = 256
	// maxNameBytes is how long a name of an author or of a group may be.
	maxNameBytes = 1 << 10
)

// impersonating are objects that are read and written as the author of each write, with the author's rights in
// the cluster. It is an adapter.ActingConn.
type impersonating struct{ objects }

// As implements [adapter.ActingConn].
func (i *impersonating) As(key string, author *stream.Author) (adapter.WriteConn, error) {
	header, problem := impersonation(author)
	if problem != "" {
		return nil, &stream.DeniedError{Key: key, Reason: problem}
	}
	acting := i.objects
	acting.as = header
	return &acting, nil
}

// everybody is the group that the cluster itself adds to all whom it knows, those who are impersonated too.
const everybody = "system:authenticated"

// impersonation returns the headers that make a request in the name of an author, or why there are none. A name
// arrives as it was sent: an HTTP header has no line breaks, and no space at either end. The names that begin with
// system: are the cluster's own, which nobody else gives.
func impersonation(author *stream.Author) (header http.Header, problem string) {
	if author == nil || author.Name == "" {
		return nil, "the watch takes writes in the name of who makes them, and there is no credential, or one that means nothing to the cluster"
	}
	if len(author.Groups) > mostGroups {
		return nil, fmt.Sprintf("you are in %d groups; want %d at most", len(author.Groups), mostGroups)
	}
	header = http.Header{transport.ImpersonateUserHeader: {author.Name}}
	groups := slices.DeleteFunc(slices.Clone(author.Groups), func(name string) bool { return name == everybody })
	for _, name := range append([]string{author.Name}, groups...) {
		switch {
		case strings.HasPrefix(name, "system:"):
			return nil, fmt.Sprintf("the name %.100q begins with system:, which only the cluster itself gives", name)
		case name == "" || len(name) > maxNameBytes || name != strings.TrimSpace(name) || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
			return nil, fmt.Sprintf("the name %.100q of you or of a group of yours is none that can be sent to the cluster", name)
		}
	}
	if len(groups) > 0 {
		header[transport.ImpersonateGroupHeader] = groups
	}
	return header, ""
}

// denied returns the error of a request that the cluster does not allow its author; nil: it is another error. It is
// another one, too, if the gateway itself may not impersonate. Then it is about the author's name or, as of Kubernetes
// 1.35, about the verb impersonate-on: of the object.
func (o *objects) denied(key string, err error) error {
	var status apierrors.APIStatus
	if o.as == nil || !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return nil
	}
	about, text := status.Status().Details, o.client.sent.hide(status.Status().Message)
	if about == nil || strings.Contains(text, "cannot impersonate") || about.Kind != o.client.config.Resource || about.Group != o.client.config.Group {
		return nil
	}
	return &stream.DeniedError{Key: key, Reason: text} // which is bounded where it is shown
}
