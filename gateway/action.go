package gateway

import (
	"net/http"
	"strings"

	"github.com/watchtide/watchtide/access"
)

// actionOf returns the action of a request, for the audit log; empty: it concerns no watch.
func actionOf(r *http.Request) access.Action {
	watch, ofOne := strings.CutPrefix(r.URL.EscapedPath(), "/v1/watches/")
	_, rest, _ := strings.Cut(watch, "/")
	switch {
	case r.URL.Path == "/v1/events", ofOne && (rest == "events" || rest == "counts/events"):
		return access.Open
	case r.URL.Path == "/v1/tickets":
		return access.AuditTicket
	case !ofOne:
		return ""
	case rest == "":
		return access.Describe
	case rest == "changes", rest == "counts/changes":
		return access.Poll
	case rest == "resources", rest == "counts", rest == "history", strings.HasPrefix(rest, "digests/"):
		return access.List
	case r.Method == http.MethodPut:
		return access.Write
	case r.Method == http.MethodDelete:
		return access.Delete
	}
	return access.Get
}
