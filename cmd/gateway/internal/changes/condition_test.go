package changes

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func resources(t *testing.T) *Resources {
	t.Helper()
	r := NewResources()
	for key, value := range map[string]string{
		"eu/web":  `{"replicas":3,"state":"ready","load":0.5,"tags":["a","b"],"big":9007199254740993,"huge":18446744073709551615}`,
		"us/web":  `{"replicas":1,"state":"starting"}`,
		"text":    `"hello"`,
		"nothing": `null`,
	} {
		if err := r.Put(key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestHolds(t *testing.T) {
	r := resources(t)
	for expression, want := range map[string]bool{
		`count == 4`:                                        true,
		`count > 4`:                                         false,
		`watch == "w"`:                                      true,
		`"eu/web" in resources`:                             true,
		`"x" in resources`:                                  false,
		`resources["eu/web"].replicas >= 2`:                 true,
		`resources["eu/web"].load < 1`:                      true,
		`resources["eu/web"].load == 0.5`:                   true,
		`resources["eu/web"].big == 9007199254740993`:       true,
		`resources["eu/web"].big == 9007199254740992`:       false,
		`resources["eu/web"].huge == 18446744073709551615u`: true,
		`"b" in resources["eu/web"].tags`:                   true,
		`resources.exists(k, k.startsWith("eu/"))`:          true,
		`resources.all(k, k.endsWith("web"))`:               false,
		`resources.exists(k, has(resources[k].state) && resources[k].state == "ready")`: true,
		`resources.filter(k, k.startsWith("us/")).size() == 1`:                          true,
		`resources["text"] == "hello"`:                                                  true,
		`resources["nothing"] == null`:                                                  true,
		`resources["text"].upperAscii() == "HELLO"`:                                     true,
		`has(resources.x)`:                                                              false,
	} {
		t.Run(expression, func(t *testing.T) {
			c, err := Compile(expression)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Holds(t.Context(), "w", r)
			if err != nil || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestHoldsFollowsChanges(t *testing.T) {
	r := resources(t)
	c, err := Compile(`count == 1 && resources["a"].n == 2`)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want bool) {
		t.Helper()
		if got, _ := c.Holds(t.Context(), "w", r); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	expect(false)
	r.Clear()
	_ = r.Put("a", []byte(`{"n":1}`))
	expect(false)
	_ = r.Put("a", []byte(`{"n":2}`))
	expect(true)
	_ = r.Put("b", []byte(`1`))
	expect(false)
	r.Delete("b")
	r.Delete("never there")
	expect(true)
}

func TestHoldsReportsEvaluationErrors(t *testing.T) {
	for expression, want := range map[string]string{
		`resources["missing"].n == 1`: "no such key",
		`resources["text"].n == 1`:    "no such",
		`resources["eu/web"].state`:   "want true or false",
	} {
		c, err := Compile(expression)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		got, err := c.Holds(t.Context(), "w", resources(t))
		if got || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", expression, got, err, want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for expression, want := range map[string]string{
		``:             "",
		`count >`:      "1:8",
		`cuont > 3`:    "undeclared reference to 'cuont'",
		`count + 1`:    "type int, want true or false",
		`count == "3"`: "no matching overload",
		`resources`:    "want true or false",
	} {
		_, err := Compile(expression)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", expression, err, want)
		}
	}
}

func TestHoldsEndsWithItsContext(t *testing.T) {
	r := NewResources()
	for i := range 2000 {
		_ = r.Put(fmt.Sprint(i), []byte("1"))
	}
	c, err := Compile(`resources.all(a, resources.all(b, resources.all(c, true)))`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := c.Holds(ctx, "w", r); got || err == nil {
		t.Errorf("got %v, %v, want an error at once", got, err)
	}
}

func TestPutRefusesInvalidJSON(t *testing.T) {
	r := NewResources()
	for _, bad := range []string{"", "{", "x"} {
		if r.Put("k", []byte(bad)) == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if len(r.values) != 0 {
		t.Errorf("got %v", r.values)
	}
}
