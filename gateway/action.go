package gateway

import (
	"net/http"
	"strings"

	"github.com/watchtide/watchtide/access/audit"
)

// actionOf returns the action of a request, for the audit log; empty: it concerns no watch.
func actionOf(r *http.Request) audit.Action {
	watch, ofOne := strings.CutPrefix(r.URL.EscapedPath(), "/v1/watches/")
	_, rest, _ := strings.Cut(watch, "/")
	switch {
	case r.URL.Path == "/v1/events", ofOne && rest == "events":
		return audit.Open
	case r.URL.Path == "/v1/tickets":
		return audit.Ticket
	case !ofOne:
		return ""
	case rest == "":
		return audit.Describe
	case rest == "changes":
		return audit.Poll
	case rest == "resources", rest == "history":
		return audit.List
	case r.Method == http.MethodPut:
		return audit.Write
	case r.Method == http.MethodDelete:
		return audit.Delete
	}
	return audit.Get
}
