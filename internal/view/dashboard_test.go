package view

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestDashboardFilters: a filter that the dashboard translates holds of the resources of which
// the dashboard itself finds that it holds. Its tests make the corpus.
func TestDashboardFilters(t *testing.T) {
	corpus := readCorpus(t)
	resources := corpus.streamed(t)
	for _, query := range corpus.Queries {
		d := parse(t, Params{Filter: query.CEL})
		found := []int{}
		for i, r := range resources {
			if ok, _ := d.Matches(r); ok {
				found = append(found, i)
			}
		}
		if !slices.Equal(found, query.Holds) {
			t.Errorf("%s\n%s\nholds of %d, in the dashboard of %d", query.Text, query.CEL, found, query.Holds)
		}
	}
	if len(resources) < 100 || len(corpus.Queries) < 300 {
		t.Errorf("%d resources and %d queries are too few", len(resources), len(corpus.Queries))
	}
}

type dashboardCorpus struct {
	Resources []struct {
		Key, Revision, Value string
		Bytes                bool
	}
	Queries []struct {
		Text, CEL string
		Holds     []int
	}
}

func readCorpus(t *testing.T) (c dashboardCorpus) {
	t.Helper()
	text, err := os.ReadFile("../../web/dashboard/test/query/corpus.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c dashboardCorpus) streamed(t *testing.T) (resources []stream.Resource) {
	t.Helper()
	for _, r := range c.Resources {
		revision, err := strconv.ParseUint(r.Revision, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		one := stream.Resource{Key: r.Key, Revision: revision, Value: []byte(r.Value)}
		if r.Bytes {
			one.Value, one.Encoding = stream.ValueFromBytes([]byte{0xff, 0})
		}
		resources = append(resources, one)
	}
	return resources
}
