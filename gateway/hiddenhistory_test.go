package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// past returns what a history has for a principal, the oldest first, by pages of one change.
func (r *guarded) past(who, path string) (all []string) {
	r.t.Helper()
	for next := ""; ; {
		got := r.get(path+"limit=1&before="+url.QueryEscape(next), r.as(who)...)
		var h historyAnswer
		if err := json.Unmarshal([]byte(got.text), &h); err != nil || got.StatusCode != 200 || len(all) > 100 {
			r.t.Fatalf("%s: %s %s", who, got.Status, got.text)
		}
		for _, c := range h.Changes {
			all = append([]string{strings.TrimSpace(c.Type + " " + c.Key + " " + string(c.Value))}, all...)
		}
		if next = h.Next; next == "" {
			return all
		}
	}
}

// TestHistoryShowsTheVersionsThatAreAllowed: a version that a principal may not see is nowhere in
// the history, and where it follows one that the principal may see, it is the end of the resource.
func TestHistoryShowsTheVersionsThatAreAllowed(t *testing.T) {
	r := newGuarded(t, nil)
	for _, value := range []string{
		`{"tenant":"acme","owner":"ann","status":"is_new","margin":"s3cret-4"}`,
		`{"tenant":"globex","owner":"ann","status":"is_open","margin":"s3cret-5"}`,
		`{"tenant":"globex","owner":"bob","status":"is_lost","margin":"s3cret-6"}`,
		`{"tenant":"globex","owner":"bob","status":"is_lost","margin":"s3cret-7"}`,
		`{"tenant":"acme","owner":"bob","status":"is_paid","margin":"s3cret-8"}`,
	} {
		r.put("o_4", value)
	}
	for who, want := range map[string]string{
		"ann":      `[upsert o_4 {"tenant":"acme","owner":"ann","status":"is_new","margin":"s3cret-4"} upsert o_4 {"tenant":"globex","owner":"ann","status":"is_open","margin":"s3cret-5"} delete o_4]`,
		"agent":    `[upsert o_4 {"status":"is_new"} delete o_4 upsert o_4 {"status":"is_paid"}]`,
		"outsider": `[]`,
	} {
		if got := fmt.Sprint(r.past(who, "/v1/watches/orders/history?key=o_4&")); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", who, got, want)
		}
		all := fmt.Sprint(r.past(who, "/v1/watches/orders/history?"))
		for _, value := range []string{"s3cret-6", "s3cret-7", "s3cret-8"} {
			if strings.Contains(all, value) {
				t.Errorf("%s sees %s", who, all)
			}
		}
	}
	if got := r.past("sam", "/v1/watches/orders/history?key=o_4&"); len(got) != 5 {
		t.Errorf("staff sees %s", got)
	}
	// A resource that is hidden, whatever its versions are, and one that does not exist.
	for _, who := range []string{"ann", "outsider", "nobody"} {
		for _, query := range []string{"key=%s", "key=%s&limit=1", "key=%s&filter=true", "key=%s&fields=status"} {
			path := "/v1/watches/orders/history?" + query
			wantSame(t, who, r.get(fmt.Sprintf(path, "o_2"), r.as(who)...), r.get(fmt.Sprintf(path, "o_9"), r.as(who)...), "o_9", "o_2")
		}
	}
}

// TestHistoryOfATemplate: a watch that a template makes has a history of its own, for those whom
// the rules of the template allow.
func TestHistoryOfATemplate(t *testing.T) {
	r := newGuarded(t, nil)
	for _, region := range []string{"eu", "us"} {
		for _, value := range []string{"1", "2"} {
			if got := r.send("PUT", "/v1/watches/vault-"+region+"/resources/gold", value, r.as("sam")...); got.StatusCode >= 300 {
				t.Fatalf("%s %s", got.Status, got.text)
			}
		}
	}
	r.send("PUT", "/v1/watches/vault-us/resources/tin", "3", r.as("sam")...).want(t, 201, "")
	eu := fmt.Sprint(r.past("sam", "/v1/watches/vault-eu/history?"))
	if us := fmt.Sprint(r.past("sam", "/v1/watches/vault-us/history?")); eu != "[upsert gold 1 upsert gold 2]" || us != "[upsert gold 1 upsert gold 2 upsert tin 3]" {
		t.Errorf("eu %s, us %s", eu, us)
	}
	var h historyAnswer
	got := r.get("/v1/watches/vault-us/history?limit=1", r.as("sam")...)
	if err := json.Unmarshal([]byte(got.text), &h); err != nil {
		t.Fatal(err)
	}
	r.get("/v1/watches/vault-us/history?after="+url.QueryEscape(h.Position), r.as("sam")...).want(t, 200, "")
	r.get("/v1/watches/vault-eu/history?after="+url.QueryEscape(h.Position), r.as("sam")...).wantProblem(t, 400, "after", "vault-us")
	r.get("/v1/watches/vault-eu/history?before="+h.Next, r.as("sam")...).wantProblem(t, 410, "before", "another history")
	for _, who := range []string{"ann", "agent", "outsider", "nobody"} {
		if got := r.get("/v1/watches/vault-eu/history", r.as(who)...); got.StatusCode < 400 || strings.Contains(got.text, "gold") {
			t.Errorf("%s: %s %s", who, got.Status, got.text)
		}
	}
}
