package client

import (
	"context"
	"errors"
	"net/url"
	"strings"
)

// Counting counts the resources of a watch by the values of some fields: the groups are resources in turn,
// with the values {"count":…}, and with Sum {"count":…,"sum":…,"min":…,"max":…}. As an option of
// [Client.Watch] it follows the groups of the only watch; they are not verified.
type Counting struct {
	// By are the paths of up to four fields. Resources with the same values of all of them are one
	// group. Each element is a path, or several with commas between them.
	By []string
	// Sum is the path of a field that is added; "": none is.
	Sum string
	// Prefix, Keys, Labels and Filter say what is counted; see View.
	Prefix         string
	Keys           []string
	Labels, Filter string
}

// errOneWatch means that other watches were asked for beside one that is counted.
var errOneWatch = errors.New("a Counting is of one watch: want no And beside it")

func (c Counting) apply(f *follower) { f.counting = &c }

// View returns what is counted.
func (c Counting) View() View {
	return View{Prefix: c.Prefix, Keys: c.Keys, Labels: c.Labels, Filter: c.Filter}
}

// addTo adds the parameters to a query.
func (c Counting) addTo(query url.Values) {
	query.Set("by", strings.Join(c.By, ","))
	if c.Sum != "" {
		query.Set("sum", c.Sum)
	}
	c.View().AddTo(query, "")
}

// Counts returns the groups of a watch, all as they were at one revision.
func (c *Client) Counts(ctx context.Context, watch string, by Counting) (Snapshot, error) {
	query := url.Values{"page_size": {pageSize}}
	by.addTo(query)
	return c.whole(ctx, query, watch, "counts")
}
