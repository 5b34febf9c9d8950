package doctor

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// cookieOf is what matters of a cookie.
type cookieOf struct{ secure bool }

// maxCookies is how many are remembered.
const maxCookies = 16

// noteCookies remembers the cookies that an answer sets. Any goroutine may call it.
func (e *Examination) noteCookies(r *http.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range r.Cookies() {
		if _, known := e.cookies[c.Name]; known || len(e.cookies) < maxCookies {
			e.cookies[c.Name] = cookieOf{c.Secure}
		}
	}
}

// checkCookies reports cookies. The gateway sets none in the answers that were asked for.
func (e *Examination) checkCookies(ctx context.Context) {
	e.mu.Lock()
	var names, open []string
	for name, c := range e.cookies {
		names = append(names, shortened(name))
		if !c.secure && e.base.Scheme == "https" {
			open = append(open, shortened(name))
		}
	}
	e.mu.Unlock()
	if len(names) == 0 {
		e.ok(ctx, Cookies, "none is set on the way: clients may come back to any replica")
		return
	}
	slices.Sort(names)
	slices.Sort(open)
	lacking := ""
	if len(open) > 0 {
		lacking = "; of them, without Secure: " + strings.Join(open, ", ")
	}
	e.problem(ctx, Cookies, "turn off sticky sessions: streams resume at any replica, and a cookie leads clients back to one that is being stopped", "a proxy sets cookies: %s%s", strings.Join(names, ", "), lacking)
}
