package log

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

// oddKeys and oddValues are what upstreams have been seen to hold.
var oddKeys = []string{
	"", "a", "default/web", "/", "a b", "a\nb", "a\r\nb", "nul\x00nul", "\xff\xfe", "é", "\u2028", `"quoted"`, `back\slash`,
	"\x7f", "tab\t", "emoji 🚀", strings.Repeat("long", 1000), "\xed\xa0\x80", "<&>",
}

var oddValues = []string{
	`{}`, `null`, `"x"`, `12345678901234567890123`, `{"n":9007199254740993,"f":1.10}`, "{\n  \"a\": [1,\r\n 2]\n}", ` {"a":1} `,
	"\"\u2028\"", `"\ud800"`, `"\u0000"`, "plain text", "two\nlines", "\xff\x00", "", `{"a":1}{"b":2}`, "\ufeff{}", "\xed\xa0\x80",
	`"` + strings.Repeat("x", 1<<20) + `"`,
}

// decode reads a data object as any JSON client does, digits kept.
func decode(t testing.TB, data []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%.200q is not JSON: %v", data, err)
	}
	return m
}

// checkFrame checks that what a client reads of a resource's frame is what the
// upstream had.
func checkFrame(t testing.TB, frame []byte, r stream.Resource, raw string) {
	t.Helper()
	lines := strings.Split(string(frame), "\n")
	if len(lines) != 4 || lines[0] != "event: upsert" || lines[2] != "" || lines[3] != "" || strings.Contains(string(frame), "\r") {
		t.Fatalf("not one event of one data line: %.200q", frame)
	}
	m := decode(t, []byte(strings.TrimPrefix(lines[1], "data: ")))
	key, _ := m["key"].(string)
	encoding, _ := m["key_encoding"].(string)
	if got, err := stream.KeyFromWire(key, encoding); err != nil || got != r.Key {
		t.Errorf("key %q, want %q (%v)", got, r.Key, err)
	}
	if m["encoding"] == stream.Base64 {
		got, err := base64.StdEncoding.DecodeString(m["value"].(string))
		if err != nil || string(got) != raw {
			t.Errorf("value %.80q, want %.80q", got, raw)
		}
		return
	}
	if !json.Valid([]byte(raw)) || !utf8.ValidString(raw) {
		if m["value"] != raw {
			t.Errorf("text %.80q, want %.80q", m["value"], raw)
		}
		return
	}
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(raw)); err != nil {
		t.Fatal(err)
	}
	var got struct{ Value json.RawMessage }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[1], "data: ")), &got); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, got.Value); err != nil || compact.String() != want.String() {
		t.Errorf("value %.80q, want %.80q", compact.String(), want.String())
	}
}

func frameOf(t testing.TB, key, raw string) ([]byte, stream.Resource) {
	t.Helper()
	value, encoding := stream.ValueFromBytes([]byte(raw))
	r := stream.Resource{Key: key, Revision: 1<<64 - 2, Value: value, Encoding: encoding}
	l := NewWriter(Config{Watch: "w"})
	if _, err := l.Replace("e", []stream.Resource{r}, r.Revision); err != nil {
		t.Fatal(err)
	}
	got, ok := l.Snapshot().Get(key)
	if !ok || got.Key != r.Key || got.Revision != r.Revision || got.Encoding != r.Encoding || !bytes.Equal(got.Value, r.Value) {
		t.Fatalf("Get(%q) = %.200v %v, want %.200v", key, got, ok, r)
	}
	entries := l.next.Entries(0)
	return l.next.Segments[0].Frame(&entries[0]), r
}

func TestOddKeysAndValues(t *testing.T) {
	for _, key := range oddKeys {
		frame, r := frameOf(t, key, `{"a":1}`)
		checkFrame(t, frame, r, `{"a":1}`)
	}
	for _, raw := range oddValues {
		frame, r := frameOf(t, "k", raw)
		checkFrame(t, frame, r, raw)
	}
}

// TestFrameIsWhatAppendEventMakes: the fast path of the log and the plain path
// agree.
func TestFrameIsWhatAppendEventMakes(t *testing.T) {
	for _, key := range oddKeys {
		got, r := frameOf(t, key, "\xff")
		want := frame.SSE.AppendEvent(nil, stream.Event{Type: stream.Upsert, Watch: "w", Resource: r}, nil)
		if !bytes.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	for _, k := range oddKeys {
		f.Add(k, []byte(`{"a":1}`))
	}
	for _, v := range oddValues {
		f.Add("k", []byte(v[:min(len(v), 100)]))
	}
	f.Fuzz(func(t *testing.T, key string, raw []byte) {
		frame, r := frameOf(t, key, string(raw))
		checkFrame(t, frame, r, string(raw))
	})
}

func TestBatchOnTheWire(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 2, Change{Resource: stream.Resource{Key: "a", Revision: 1, Value: []byte("1")}}, Change{Resource: stream.Resource{Key: "b", Revision: 2, Value: []byte("2")}})
	inSync(l)
	var b Batch
	first := l.Subscribe(SubscribeOptions{})
	first.Next(&b)
	join := func(parts [][]byte) string { return string(bytes.Join(parts, nil)) }
	// The id of a reset is on the reset itself: a client that has cleared its state
	// must never hold its previous id.
	wantReset := "event: reset\ndata: {\"type\":\"reset\",\"watch\":\"w\",\"reason\":\"initial\"}\nid: w@e-0/2\n\n"
	if got := join(b.Append(nil, frame.SSE, []byte("w@e-0/2"))); got != wantReset || !b.Boundary() {
		t.Errorf("got %q, want %q", got, wantReset)
	}
	first.Next(&b)
	wantSSE := `event: upsert
data: {"type":"upsert","watch":"w","key":"a","revision":"1","value":1}

event: upsert
data: {"type":"upsert","watch":"w","key":"b","revision":"2","value":2}

event: end_of_snapshot
data: {"type":"end_of_snapshot","watch":"w","revision":"2","count":2}
id: w@e-2

`
	if got := join(b.Append(nil, frame.SSE, []byte("w@e-2"))); got != wantSSE {
		t.Errorf("got\n%s\nwant\n%s", got, wantSSE)
	}
	wantNDJSON := `{"type":"upsert","watch":"w","key":"a","revision":"1","value":1}
{"type":"upsert","watch":"w","key":"b","revision":"2","value":2}
{"type":"end_of_snapshot","watch":"w","revision":"2","count":2}
{"type":"position","id":"w@e-2"}
`
	if got := join(b.Append(nil, frame.NDJSON, []byte("w@e-2"))); got != wantNDJSON {
		t.Errorf("got\n%s\nwant\n%s", got, wantNDJSON)
	}
	s := l.Subscribe(SubscribeOptions{})
	for s.Next(&b) {
	}
	mustCommit(t, l, 3, remove("a", 3))
	s.Next(&b)
	if got, want := join(b.Append(nil, frame.SSE, []byte("w@e-3"))), "event: delete\ndata: {\"type\":\"delete\",\"watch\":\"w\",\"key\":\"a\",\"revision\":\"3\"}\nid: w@e-3\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := join(b.Append(nil, frame.SSE, nil)); strings.Contains(got, "id:") {
		t.Errorf("an id that nobody asked for: %q", got)
	}
}
