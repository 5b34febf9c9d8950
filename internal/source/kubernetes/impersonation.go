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
	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/transport"
)

const (
	// mostGroups is how many groups are sent of an author, and mostExtra how many values of extra fields.
	mostGroups = 256
	mostExtra  = 64
	// maxNameBytes is how long a name of an author or of a group may be.
	maxNameBytes = 1 << 10
)

// impersonating are objects that are read and written as the author of each write, with the author's rights in
// the cluster. It is an adapter.ActingConn.
type impersonating struct{ objects }

// As implements [adapter.ActingConn].
func (i *impersonating) As(key string, author *stream.Author) (adapter.WriteConn, error) {
	header, problem := impersonation(author, i.client.config.ImpersonateExtra)
	if problem != "" {
		return nil, &stream.DeniedError{Key: key, Reason: problem}
	}
	acting := i.objects
	acting.as = header
	return &acting, nil
}

const (
	// everybody is the group that the cluster itself adds to all whom it knows, those who are impersonated too.
	everybody = "system:authenticated"
	// accounts begins the names of service accounts, and is with an s the name of their group.
	accounts = "system:serviceaccount"
)

// impersonation returns the headers that make a request in the name of an author, or why there are none. A name
// arrives as it was sent: an HTTP header has no line breaks, and no space at either end. The names that begin with
// system: are the cluster's own, which nobody else gives. Of those only service accounts are impersonated, if the cluster itself has
// said that this is one; it knows their groups.
func impersonation(author *stream.Author, extra bool) (header http.Header, problem string) {
	if author == nil || author.Name == "" {
		return nil, "the watch takes writes in the name of who makes them, and there is no credential, or one that means nothing to the cluster"
	}
	if len(author.Groups) > mostGroups {
		return nil, fmt.Sprintf("you are in %d groups; want %d at most", len(author.Groups), mostGroups)
	}
	header = http.Header{transport.ImpersonateUserHeader: {author.Name}}
	own := []string{everybody}
	names := []string{author.Name}
	if namespace, is := serviceAccount(author); is {
		own, names = append(own, accounts+"s", accounts+"s:"+namespace), nil
	}
	groups := slices.DeleteFunc(slices.Clone(author.Groups), func(name string) bool { return slices.Contains(own, name) })
	for _, name := range append(names, groups...) {
		switch {
		case strings.HasPrefix(name, "system:"):
			return nil, fmt.Sprintf("the name %.100q begins with system:, which only the cluster itself gives", name)
		case name == "" || !fitsHeader(name):
			return nil, fmt.Sprintf("the name %.100q of you or of a group of yours is none that can be sent to the cluster", name)
		}
	}
	if len(groups) > 0 {
		header[transport.ImpersonateGroupHeader] = groups
	}
	if extra && author.Authenticated {
		return header, addExtra(header, author)
	}
	return header, ""
}

// serviceAccount returns the namespace of an author that is a service account of the cluster; false: it is none.
func serviceAccount(author *stream.Author) (namespace string, is bool) {
	name, is := strings.CutPrefix(author.Name, accounts+":")
	namespace, account, found := strings.Cut(name, ":")
	isName := func(text string) bool {
		return text != "" && len(text) <= 253 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
	}
	return namespace, is && found && author.Authenticated && isName(namespace) && isName(account)
}

// addExtra adds the headers of the uid and the extra fields of an author, or returns why that is impossible.
func addExtra(header http.Header, author *stream.Author) (problem string) {
	if author.UID != "" {
		header[transport.ImpersonateUIDHeader] = []string{author.UID}
	}
	values := []string{author.UID}
	for key, all := range author.Extra {
		if key == "" || key != strings.ToLower(key) || len(key) > maxNameBytes {
			return fmt.Sprintf("the name %.100q of an extra field of yours is none that can be sent to the cluster", key)
		}
		values = append(values, all...)
		header[transport.ImpersonateUserExtraHeaderPrefix+escapedKey(key)] = all
	}
	switch i := slices.IndexFunc(values, func(v string) bool { return !fitsHeader(v) }); {
	case len(values) > mostExtra+1:
		return fmt.Sprintf("you have %d values of extra fields; want %d at most", len(values)-1, mostExtra)
	case i >= 0:
		return fmt.Sprintf("the value %.100q of your uid or of an extra field of yours is none that can be sent to the cluster", values[i])
	}
	return ""
}

// fitsHeader reports whether a text arrives in a header as it was sent.
func fitsHeader(text string) bool {
	return len(text) <= maxNameBytes && text == strings.TrimSpace(text) && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// escapedKey returns the name of an extra field as the name of a header has it: what such a name cannot have is percent-encoded.
func escapedKey(key string) string {
	var out strings.Builder
	for i := range len(key) {
		if c := key[i]; c == '%' || !httpguts.IsTokenRune(rune(c)) {
			fmt.Fprintf(&out, "%%%02X", c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
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
