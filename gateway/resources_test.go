package gateway

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/stream"
)

func TestPutGetDelete(t *testing.T) {
	r := newAPIRig(t, Config{})

	put := r.send("PUT", "/v1/watches/notes/resources/a", `{"n": 1}`)
	put.want(t, 201, `{"key":"a","revision":"2","value":{"n": 1}}`+"\n")
	if got := put.Header.Get("ETag"); got != `"2"` {
		t.Errorf("ETag of PUT is %s", got)
	}
	r.send("PUT", "/v1/watches/notes/resources/a", `{"n": 2}`).want(t, 200, `{"key":"a","revision":"3","value":{"n": 2}}`+"\n")

	got := r.get("/v1/watches/notes/resources/a")
	got.want(t, 200, `{"key":"a","revision":"3","value":{"n": 2}}`+"\n")
	if got.Header.Get("ETag") != `"3"` || got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("headers of GET: %v", got.Header)
	}

	r.send("DELETE", "/v1/watches/notes/resources/a", "").want(t, 200, `{"deleted":true}`+"\n")
	r.send("DELETE", "/v1/watches/notes/resources/a", "").want(t, 200, `{"deleted":false}`+"\n")
	r.get("/v1/watches/notes/resources/a").wantProblem(t, 404, "", `no resource with the key "a"`)
}

func TestValidateOnly(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.send("PUT", "/v1/watches/notes/resources/a?validate_only=true", `1`).want(t, 201, "")
	r.get("/v1/watches/notes/resources/a").want(t, 404, "")

	r.send("PUT", "/v1/watches/notes/resources/a?validate_only=false", `1`).want(t, 201, "")
	r.send("PUT", "/v1/watches/notes/resources/a?validate_only=true", `2`).want(t, 200, `{"key":"a","revision":"3","value":2}`+"\n")
	r.send("DELETE", "/v1/watches/notes/resources/a?validate_only=true", "").want(t, 200, `{"deleted":true}`+"\n")
	r.get("/v1/watches/notes/resources/a").want(t, 200, `{"key":"a","revision":"2","value":1}`+"\n")

	r.send("PUT", "/v1/watches/notes/resources/a?validate_only=yes", `1`).wantProblem(t, 400, "validate_only", "want true or false")
}

func TestCompareAndSet(t *testing.T) {
	r := newAPIRig(t, Config{})
	const path = "/v1/watches/notes/resources/a"
	r.send("PUT", path, `1`, `If-Match: "9"`).wantProblem(t, 412, "If-Match", "does not exist")
	r.send("PUT", path, `1`, `If-None-Match: *`).want(t, 201, "")
	r.send("PUT", path, `2`, `If-None-Match: *`).wantProblem(t, 412, "If-None-Match", "exists at revision 2")
	r.send("PUT", path, `2`, `If-Match: "1"`).wantProblem(t, 412, "If-Match", "is at revision 2")
	r.send("PUT", path, `2`, `If-Match: "2"`).want(t, 200, "")
	r.send("DELETE", path, "", `If-Match: "2"`).wantProblem(t, 412, "If-Match", "is at revision 3")
	r.get(path).want(t, 200, `{"key":"a","revision":"3","value":2}`+"\n")
	r.send("DELETE", path, "", `If-Match: "3"`).want(t, 200, "")
	r.send("DELETE", path, "", `If-None-Match: *`).wantProblem(t, 400, "If-None-Match", "no meaning")

	for _, bad := range []string{"2", `W/"2"`, `"x"`, `"1", "2"`, `*`, `"-1"`, `"0"`, `"18446744073709551616"`, `""`} {
		r.send("PUT", path, `1`, "If-Match: "+bad).wantProblem(t, 400, "If-Match", "one revision in quotes")
	}
	r.send("PUT", path, `1`, `If-None-Match: "1"`).wantProblem(t, 400, "If-None-Match", "want *")
	r.send("PUT", path, `1`, `If-None-Match: *`, `If-Match: "1"`).wantProblem(t, 400, "If-None-Match", "want one of them")
}

// TestKeys checks that any key can be written, read back, listed and deleted.
func TestKeys(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, key := range []string{
		"plain", "with/slash", "/begins/with", "ends/with/", "//", "a//b", "with space", " ", "new\nline", "\r\n",
		"nul\x00byte", "percent%2Fencoded", "100%", "question?mark", "hash#", "plus+", "semi;colon", "é/ü", "日本",
		"quote\"s", `back\slash`, "..", "../up", ".", "\xff\xfe", "half\xe2\x82", "a:verb", "events", "colon:", "tab\t", "del\x7f",
	} {
		t.Run(url.PathEscape(key), func(t *testing.T) {
			path := "/v1/watches/notes/resources/" + url.PathEscape(key)
			r.send("PUT", path, `"v"`).want(t, 201, "")
			r.wantKey(t, path, key)
			r.wantKey(t, "/v1/watches/notes/resources/"+escapeAll(key), key)
			if wire, encoding := stream.WireKey(key); encoding != "" {
				r.wantKey(t, "/v1/watches/notes/resources/"+url.PathEscape(wire)+"?key_encoding="+encoding, key)
			}
			if !strings.Contains(r.get("/v1/watches/notes/resources").text, `"value":"v"`) {
				t.Error("not in the list")
			}
			r.send("DELETE", path, "").want(t, 200, `{"deleted":true}`+"\n")
		})
	}
}

// wantKey reads a resource and checks that it has the key.
func (r *apiRig) wantKey(t *testing.T, path, key string) {
	t.Helper()
	got := r.get(path)
	got.want(t, 200, "")
	wire, encoding := stream.WireKey(key)
	want := `{"key":` + jsonString(wire)
	if !strings.HasPrefix(got.text, want) || strings.Contains(got.text, `"key_encoding":"base64"`) != (encoding != "") {
		t.Errorf("%s: %s, want %s…, encoding %q", path, got.text, want, encoding)
	}
}

// jsonString returns text as JSON, without escaping <, > and &.
func jsonString(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // strings can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// escapeAll percent-encodes every byte, as one segment.
func escapeAll(key string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(key) {
		b.WriteByte('%')
		b.WriteByte(hex[key[i]>>4])
		b.WriteByte(hex[key[i]&15])
	}
	return b.String()
}

func TestKeyThatIsNotBase64(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.get("/v1/watches/notes/resources/a?key_encoding=base64").wantProblem(t, 400, "key", "not base64")
	r.get("/v1/watches/notes/resources/a?key_encoding=hex").wantProblem(t, 400, "key_encoding", `want "base64"`)
	r.get("/v1/watches/notes/resources/").wantProblem(t, 404, "", `no resource with the key ""`)
}

// TestValues checks that what was written is read back byte for byte.
func TestValues(t *testing.T) {
	r := newAPIRig(t, Config{})
	for name, value := range map[string]string{
		"line separators":   "\"a\u2028b\u2029c\"",
		"lone surrogates":   `"\ud800 \udfff"`,
		"escaped":           `"\u003c\/\u0000\u2028"`,
		"html":              `"<script>&amp;</script>"`,
		"beyond 2^53":       `[9007199254740993,18446744073709551615,-9223372036854775808]`,
		"digits":            `[1.0,1.10,1e400,0.1000000000000000055511151231257827,-0]`,
		"order and doubles": `{"b":1,"a":2,"b":3}`,
		"spaces":            `{ "a" : [ 1 , 2 ] }`,
		"null":              `null`,
		"1 MiB":             `"` + strings.Repeat("0123456789abcdef", 1<<16) + `"`,
		"deep":              strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			want := r.statusOfPut("v")
			r.send("PUT", "/v1/watches/notes/resources/v", value).want(t, want, "")
			for _, path := range []string{"/v1/watches/notes/resources/v", "/v1/watches/notes/resources"} {
				if got := r.get(path).text; !strings.Contains(got, `"value":`+value+`}`) {
					t.Errorf("%s: %.300s, want %.300s", path, got, value)
				}
			}
		})
	}
}

// statusOfPut returns the status that the next PUT of a key should have.
func (r *apiRig) statusOfPut(key string) int {
	r.notes.mu.Lock()
	defer r.notes.mu.Unlock()
	if _, there := r.notes.resources[key]; there {
		return http.StatusOK
	}
	return http.StatusCreated
}

func TestValueOnSeveralLines(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.send("PUT", "/v1/watches/notes/resources/v", "{\r\n  \"a\": 1,\n\t\"b\": \"x y\"\n}\n").
		want(t, 201, `{"key":"v","revision":"2","value":{"a":1,"b":"x y"}}`+"\n")
}

func TestBadBodies(t *testing.T) {
	r := newAPIRig(t, Config{})
	for body, detail := range map[string]string{
		"":                       "the body is empty",
		" \n\t":                  "the body is empty",
		"{":                      "line 1, column 1: unexpected end",
		"{\"a\":\n 1,\n x}":      "line 3, column 2: invalid character 'x'",
		"1 2":                    "line 1, column 3: invalid character '2'",
		"{} trailing":            "line 1, column 4",
		"'single'":               "line 1, column 1: invalid character '\\''",
		"nul":                    "line 1, column 3",
		"\"a\nb\"":               "line 1, column 3: invalid character '\\n' in string",
		"\xef\xbb\xbf{}":         "line 1, column 1",
		"{\"a\":\n\"\xff\"}":     "not UTF-8: byte 0xff at line 2, column 2",
		"NaN":                    "line 1, column 1: invalid character 'N'",
		"\"\\x\"":                "line 1, column 3",
		"\"\xed\xa0\x80\"":       "not UTF-8: byte 0xed at line 1, column 2",
		strings.Repeat("[", 2e4): "line 1, column",
	} {
		r.send("PUT", "/v1/watches/notes/resources/v", body).wantProblem(t, 400, "body", detail)
	}
	r.get("/v1/watches/notes/resources/v").want(t, 404, "")
}

func TestTooLargeBodies(t *testing.T) {
	r := newAPIRig(t, Config{})
	atLimit := `"` + strings.Repeat("x", notebookLimit-2) + `"`
	r.send("PUT", "/v1/watches/notes/resources/v", atLimit).want(t, 201, "")
	r.send("PUT", "/v1/watches/notes/resources/v", `"x`+atLimit[1:]).wantProblem(t, 413, "", "the limit is 2097152")
	r.send("PUT", "/v1/watches/notes/resources/v", strings.Repeat(" ", authz.MaxValue+1)).wantProblem(t, 413, "", "the limit is 16777216")
}

func TestReadOnly(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, method := range []string{"PUT", "DELETE"} {
		got := r.send(method, "/v1/watches/hosts/resources/default/a", bodyFor(method, "1"))
		got.wantProblem(t, 405, "", `watch "hosts" is read-only`)
		if allow := got.Header.Get("Allow"); allow != "GET, HEAD" {
			t.Errorf("Allow: %s", allow)
		}
	}
}

// TestBrokenSource checks that internal errors of an upstream go to the log, not to
// clients.
func TestBrokenSource(t *testing.T) {
	log := make(chan string, 10)
	r := newAPIRig(t, Config{Logger: slog.New(slog.NewTextHandler(lines(log), nil))})
	r.notes.mu.Lock()
	r.notes.broken = errors.New("password of the database is wrong")
	r.notes.mu.Unlock()
	for _, method := range []string{"PUT", "DELETE"} {
		r.send(method, "/v1/watches/notes/resources/v", bodyFor(method, "1")).wantProblem(t, 500, "", "internal error")
		got := <-log
		for _, want := range []string{"level=ERROR", "method=" + method, "path=/v1/watches/notes/resources/v", "password of the database"} {
			if !strings.Contains(got, want) {
				t.Errorf("logged %s: want %s", got, want)
			}
		}
	}
	r.get("/v1/watches/notes/resources/v").want(t, 404, "")
	if len(log) > 0 {
		t.Errorf("a client's mistake is logged: %s", <-log)
	}
}

// lines sends each line that is written to it.
type lines chan<- string

// Write implements io.Writer, for one line.
func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
