package view_test

import (
	"fmt"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// A view loses a resource that it had before a change and has no more after it.
func ExampleIndex() {
	var index view.Index[string]
	for _, team := range []string{"red", "blue", "green"} {
		d, err := view.Parse(view.Params{Filter: fmt.Sprintf(`value.team == %q && value.state != "passing"`, team), Fields: []string{"state"}})
		if err != nil {
			fmt.Println(err)
			return
		}
		index.Add(team, d)
	}
	index.Candidates(view.Change{
		Old: &stream.Resource{Key: "web", Revision: 7, Value: []byte(`{"team":"red","state":"critical"}`)},
		New: &stream.Resource{Key: "web", Revision: 8, Value: []byte(`{"team":"red","state":"passing"}`)},
	}, func(c view.Candidate[string]) {
		before, _ := c.Before()
		after, _ := c.After()
		fmt.Println(c.ID, before, after)
	})
	// Output: red true false
}

func ExampleParse() {
	_, err := view.Parse(view.Params{Filter: `vaule.team = "red"`})
	fmt.Println(err)
	d, err := view.Parse(view.Params{Filter: `(value.team)=='red'`, Labels: "b,a in (x)"})
	fmt.Println(d.Params().Filter, d.Params().Labels, err)
	// Output:
	// filter, column 12: = is no operator: did you mean ==?
	// value.team == "red" a=x,b <nil>
}
