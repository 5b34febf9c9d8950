package introspection

import (
	"net/url"
	"slices"
	"testing"
)

// FuzzSubscribersQuery checks that no query is accepted whose parameters are not within bounds.
func FuzzSubscribersQuery(f *testing.F) {
	for _, query := range []string{"", "limit=10&after=0.dn1cq9j0t3zu&search=a&group=watch", "after=.", "application=%ff&network=10.0.0.0/24&transport=sse", "after=zz.-1", "principal=ann&client_id=shop&group=client_id", "sort=since&after=dn1cq9j0t3zu", "sort=since&after=1.a", "sort=lag&after=0"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, p := subscribersQuery(query, nil)
		if p != nil {
			if p.Status != 400 || p.Parameter == "" {
				t.Errorf("%+v", p)
			}
			return
		}
		if q.Limit > maxListed || len(q.Filter.Search) > maxSearch || len(q.Filter.Principal) > maxPrincipal || len(q.Filter.ClientID) > maxPrincipal || q.By != "" && !slices.Contains(Properties, q.By) {
			t.Errorf("%+v", q)
		}
		if place, ok := ParsePlace(q.After.String()); q.After != (Place{}) && (!ok || place != q.After) {
			t.Errorf("%+v is parsed as %+v", q.After, place)
		}
	})
}
