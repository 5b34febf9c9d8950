package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

var templatePlaces = attack{
	name:  "template-places",
	title: "one client keeps streams of as many watches of a template as it gets, and somebody else wants one",
	run:   runTemplatePlaces,
}

const templateConfiguration = listeners + `
sources: { a: { type: store } }
watches: { "room-{name}": { source: a, params: { name: "[a-z0-9]+" }, prime: false, linger: 1s, max: 20 } }
`

func runTemplatePlaces(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, templateConfiguration, nil)
	if err != nil {
		return err
	}
	attacker := t.as("", "127.0.0.66")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	got := map[int]int{}
	for i := range 40 {
		response, err := attacker.open(ctx, http.MethodGet, fmt.Sprintf("/v1/watches/room-x%d/events", i), "")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		got[response.StatusCode]++
	}
	r.report("places of 20 that one client gets", "≤ 15", got[http.StatusOK] <= 15, "%d", got[http.StatusOK])
	for i := range 5 {
		other := t.as("", fmt.Sprintf("127.0.0.%d", 4+i))
		began := time.Now()
		response, err := other.open(ctx, http.MethodGet, fmt.Sprintf("/v1/watches/room-y%d/events", i), "")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		r.equal(fmt.Sprintf("another client, number %d", i+1), "200", fmt.Sprint(response.StatusCode))
		r.atMost("until it is answered", time.Since(began), time.Second)
	}
	return nil
}
