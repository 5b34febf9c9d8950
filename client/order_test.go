package client

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

func ordered(t *testing.T, text string) Order {
	t.Helper()
	o, err := ParseOrder(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOrderVectors compares the values of the test vectors, which the server and the browser have too.
func TestOrderVectors(t *testing.T) {
	text, err := os.ReadFile("../internal/order/testdata/values.json")
	if err != nil {
		t.Skip(err) // the module alone
	}
	var groups [][]string
	if err := json.Unmarshal(text, &groups); err != nil {
		t.Fatal(err)
	}
	resource := func(value string) Resource {
		return Resource{Key: "k", Value: json.RawMessage(`{"v":{"w":` + value + `}}`)}
	}
	up, down := ordered(t, "v.w"), ordered(t, "-v.w")
	for i, group := range groups {
		for _, a := range group {
			for j, other := range groups {
				for _, b := range other {
					if got := up.Compare(resource(a), resource(b)); got != cmp.Compare(i, j) {
						t.Errorf("%s compares with %s as %d", a, b, got)
					}
					if got := down.Compare(resource(a), resource(b)); got != cmp.Compare(j, i) {
						t.Errorf("%s compares with %s as %d in descending order", a, b, got)
					}
				}
			}
			absent := Resource{Key: "a", Value: json.RawMessage(`{"v":[1]}`)}
			if up.Compare(resource(a), absent) >= 0 || down.Compare(resource(a), absent) >= 0 {
				t.Errorf("%s does not come before what is absent", a)
			}
		}
	}
}

func TestOrder(t *testing.T) {
	for order, want := range map[string]string{
		"":            "a b c base64 d",
		"-n":          "b d a c base64",
		"n,name":      "c a d b base64",
		` -n , -name`: "b d a c base64",
		`"n"`:         "c a b d base64",
		`-"-x,\"y"`:   "base64 a b c d",
		`o . "p.q".r`: "d a b c base64",
	} {
		var o Order
		if order != "" {
			o = ordered(t, order)
		}
		all := []Resource{
			{Key: "d", Value: json.RawMessage(`{"n":2,"name":"x","o":{"p.q":{"r":1}}}`)},
			{Key: "YzE=", KeyEncoding: "base64", Value: json.RawMessage(`{"-x,\"y":1}`)}, // c1
			{Key: "b", Value: json.RawMessage(`{"n":1,"n":2.0,"name":"y"}`)},
			{Key: "a", Value: json.RawMessage(`{"n":1}`)},
			{Key: "c", Value: json.RawMessage(`{"n":-1e300}`)},
		}
		slices.SortFunc(all, o.Compare)
		var got []string
		for _, r := range all {
			got = append(got, cmp.Or(r.KeyEncoding, r.Key))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", order, text, want)
		}
	}
	for _, right := range []string{`"-a"`, `-"+a"`, `"a:desc"`, "a:desc.b", "a:b", "a.-b", ":desc.a", "a:description"} {
		ordered(t, right)
	}
	for _, wrong := range []string{"", "-", "a,", ",a", "a..b", ".a", "a.", `"a`, `"a"b`, "a b", "a,,b", "--a", "+a", "b, -+a", "- -a", "a:desc", "b.a:ASC ,c", "a desc", "a,-a", `a.b,"a".b`} {
		if o, err := ParseOrder(wrong); err == nil {
			t.Errorf("%q is %v, want an error", wrong, o)
		}
	}
	for wrong, want := range map[string]string{
		"--cpu":          `at "-cpu": want one minus where the order descends`,
		"a,- -cpu":       `at "-cpu": want one minus where the order descends`,
		"-+cpu":          `at "+cpu": want one minus where the order descends`,
		"a, +cpu":        `at "+cpu": want one minus where the order descends`,
		"-cpu:desc":      `at ":desc": want a minus before a path that descends`,
		"a, b.cpu:ASC,c": `at ":ASC,c": want a minus before a path that descends`,
		"cpu desc":       `at "desc": want a minus before a path that descends`,
		"cpu asc ,a":     `at "asc ,a": want a minus before a path that descends`,
		`a.b,c,-"a".b`:   `at "-\"a\".b": the path a.b is there twice`,
	} {
		if o, err := ParseOrder(wrong); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v, want %s", wrong, o, err, want)
		}
	}
	for _, right := range []string{`-"-a"`, `"+a"`, `"a:asc"`, "a:b", "a-b+c", "a:asc.b", `"a desc"`, "a,-a.b", "asc,desc", "a.-b"} {
		if _, err := ParseOrder(right); err != nil {
			t.Error(err)
		}
	}
}

// TestOrderOfLongValues: the beginning of a text, and the first digits of a number, count.
func TestOrderOfLongValues(t *testing.T) {
	a, nines := strings.Repeat("a", maxOrderText), strings.Repeat("9", maxOrderDigits)
	for _, row := range []struct {
		one, other string
		want       int
	}{
		{`"` + a + `"`, `"` + a + `z"`, 0},
		{`"` + a[1:] + `a"`, `"` + a[1:] + `b"`, -1},
		{`"` + a[1:] + `é"`, `"` + a[1:] + `日"`, 0},
		{nines + "1", nines + "2", 0},
		{nines + "1", nines + "11", -1},
		{"1e" + strings.Repeat("9", 1000), "2e" + strings.Repeat("9", 1001), -1},
		{"1e" + strings.Repeat("9", 1000), "1e" + strings.Repeat("9", 1001), 0},
	} {
		resource := func(value string) Resource { return Resource{Value: json.RawMessage(`{"v":` + value + `}`)} }
		if got := ordered(t, "v").Compare(resource(row.one), resource(row.other)); got != row.want {
			t.Errorf("%.40s… compares with %.40s… as %d, want %d", row.one, row.other, got, row.want)
		}
	}
}

func FuzzOrder(f *testing.F) {
	f.Add("-a,b.c", `{"a":1.5e3,"b":{"c":"x"}}`)
	f.Add(`"a.b"`, `[]`)
	f.Fuzz(func(t *testing.T, order, value string) {
		if o, err := ParseOrder(order); err == nil {
			if r := (Resource{Key: "k", Value: json.RawMessage(value)}); o.Compare(r, r) != 0 {
				t.Errorf("%s: %s is not equal to itself", order, value)
			}
		}
	})
}
