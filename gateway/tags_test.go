package gateway

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestTagsSayNothingOfWhatIsHidden checks that the ETag of a list stays the same, and the
// list is not sent again, as long as nothing changes that its reader may see; that the next
// page of a list that was kept can still be read; and that what may be seen changes the tag.
func TestTagsSayNothingOfWhatIsHidden(t *testing.T) {
	r := newGuarded(t, nil)
	const orders = "/v1/watches/orders/resources"
	change := func(key, value string) {
		t.Helper()
		if got := r.send("PUT", orders+"/"+key, value, r.as("sam")...); got.StatusCode/100 != 2 {
			t.Fatal(got.Status, got.text)
		}
	}
	change("o_7", `{"tenant":"acme","owner":"ann","status":"is_late"}`)
	for _, query := range []string{"?page_size=1", "?page_size=1&fields=status", `?page_size=1&filter=value.owner!="x"`, "?page_size=1&prefix=o_"} {
		first := r.get(orders+strings.ReplaceAll(query, `"`, "%22"), r.as("ann")...)
		tag := first.Header.Get("ETag")
		if !regexp.MustCompile(`^W/"[a-z0-9]+-4\.2"$`).MatchString(tag) {
			t.Errorf("%s: the tag is %s, want that of the newest of two resources", query, tag)
		}
		for i, hidden := range []string{"o_2", "o_9", "o_2"} {
			change(hidden, fmt.Sprintf(`{"owner":"bob","n":%d}`, i))
			same := r.get(orders+strings.ReplaceAll(query, `"`, "%22"), append(r.as("ann"), "If-None-Match: "+tag)...)
			if same.StatusCode != http.StatusNotModified || same.Header.Get("ETag") != tag {
				t.Errorf("%s: after a change of %s: %s, ETag %s, want 304 and %s", query, hidden, same.Status, same.Header.Get("ETag"), tag)
			}
		}
		r.send("DELETE", orders+"/o_9", "", r.as("sam")...).want(t, 200, "")
		again := r.get(orders+strings.ReplaceAll(query, `"`, "%22"), r.as("ann")...)
		if again.Header.Get("ETag") != tag {
			t.Errorf("%s: the tag is %s without a condition, and was %s", query, again.Header.Get("ETag"), tag)
		}
		next := r.get(orders+strings.ReplaceAll(query, `"`, "%22")+"&page_token="+between(first.text, `"next_page_token":"`, `"`), r.as("ann")...)
		if next.StatusCode != 200 || !strings.Contains(next.text, "is_late") || next.Header.Get("ETag") != "" {
			t.Errorf("%s: the next page of the first list: %s, ETag %s: %s", query, next.Status, next.Header.Get("ETag"), next.text)
		}
	}
	tag := r.get(orders, r.as("ann")...).Header.Get("ETag")
	remove := func(key string) { r.send("DELETE", orders+"/"+key, "", r.as("sam")...).want(t, 200, "") }
	for _, write := range []func(){
		func() { change("o_1", `{"owner":"ann","n":2}`) },
		func() { change("o_2", `{"owner":"ann"}`) }, // enters
		func() { change("o_2", `{"owner":"bob"}`) }, // leaves
		func() { remove("o_7") },
		func() { remove("o_1") }, // the last one
	} {
		write()
		after := r.get(orders, append(r.as("ann"), "If-None-Match: "+tag)...)
		if after.StatusCode != 200 || after.Header.Get("ETag") == tag {
			t.Errorf("after a change: %s, ETag %s, and before it %s", after.Status, after.Header.Get("ETag"), tag)
		}
		tag = after.Header.Get("ETag")
	}
}

// TestCompareAndSetUnderAPolicy checks that the ETag of a resource that its reader sees
// whole is that which a write takes, and that the tag of a part is refused.
func TestCompareAndSetUnderAPolicy(t *testing.T) {
	r := newGuarded(t, nil)
	const path = "/v1/watches/orders/resources/o_1"
	mine := func(n int) string { return fmt.Sprintf(`{"owner":"ann","n":%d}`, n) }
	read := r.get(path, r.as("ann")...)
	tag := read.Header.Get("ETag")
	if tag != `"1"` {
		t.Fatalf("the tag of a resource that is seen whole is %s", tag)
	}
	put := r.send("PUT", path, mine(1), append(r.as("ann"), "If-Match: "+tag)...)
	put.want(t, 200, "")
	if got := r.get(path, r.as("ann")...).Header.Get("ETag"); got != put.Header.Get("ETag") {
		t.Errorf("the tag is %s, and the write was answered with %s", got, put.Header.Get("ETag"))
	}
	r.send("PUT", path, mine(2), append(r.as("ann"), "If-Match: "+tag)...).wantProblem(t, 412, "If-Match", "is at revision")
	r.send("DELETE", path, "", append(r.as("ann"), "If-Match: "+tag)...).wantProblem(t, 412, "If-Match", "is at revision")
	part := r.get(path+"?fields=n", r.as("ann")...).Header.Get("ETag")
	for _, method := range []string{"PUT", "DELETE"} {
		r.send(method, path, bodyFor(method, mine(3)), append(r.as("ann"), "If-Match: "+part)...).wantProblem(t, 400, "If-Match", "of a part of the resource")
	}
	r.send("DELETE", path, "", append(r.as("ann"), "If-Match: "+put.Header.Get("ETag"))...).want(t, 200, `{"deleted":true}`+"\n")

	agents := r.get("/v1/watches/orders/resources/o_3", r.as("agent")...).Header.Get("ETag")
	if !regexp.MustCompile(`^"3\.[a-z2-7]{32}"$`).MatchString(agents) {
		t.Errorf("the tag of a resource of which fields are hidden is %s", agents)
	}
}
