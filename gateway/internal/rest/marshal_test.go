package rest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

func TestMarshal(t *testing.T) {
	since := timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC))
	for name, test := range map[string]struct {
		message any
		want    string
	}{
		"watches": {&api.ListWatchesResponse{Instance: "k3v9", Watches: []*api.Watch{{Name: "a"}, {Name: "b", Since: since, Reason: `"lost"`, Bytes: 1 << 60, Writable: true,
			Upstream: &api.Upstream{Since: since, Attempts: 3, LastError: "<refused>", LastErrorAt: since, NextAttemptAt: since}, Changes: 1<<64 - 1, Partial: true}}},
			`{"instance":"k3v9","watches":[{"name":"a","source":"","state":"","epoch":"","revision":"0","count":0,"bytes":0,"subscribers":0,"writable":false,"upstream":{"connected":false,"attempts":0},"changes":0},` +
				`{"name":"b","source":"","state":"","since":"2026-01-02T03:04:05.678Z","reason":"\"lost\"","epoch":"","revision":"0","count":0,"bytes":1152921504606846976,"subscribers":0,"writable":true,` +
				`"upstream":{"connected":false,"since":"2026-01-02T03:04:05.678Z","attempts":3,"last_error":"<refused>","last_error_at":"2026-01-02T03:04:05.678Z","next_attempt_at":"2026-01-02T03:04:05.678Z"},"changes":18446744073709551615,"partial":true}]}`},
		"no watch": {&api.ListWatchesResponse{}, `{"instance":"","watches":[]}`},
		"resource": {&api.Resource{Key: "a", Revision: 1<<64 - 1, Value: []byte(`1e999`)},
			`{"key":"a","revision":"18446744073709551615","value":1e999}`},
		"encodings": {&api.Resource{Key: "/w==", KeyEncoding: "base64", Revision: 1, Value: []byte(`"AA=="`), Encoding: "base64"},
			`{"key":"/w==","revision":"1","key_encoding":"base64","encoding":"base64","value":"AA=="}`},
		"put": {&api.PutResourceResponse{Resource: &api.Resource{Key: "é<&>", Revision: 1, Value: []byte(`{}`)}, Created: true},
			`{"key":"é<&>","revision":"1","value":{}}`},
		"delete": {&api.DeleteResourceResponse{Deleted: true}, `{"deleted":true}`},
		"page": {&api.ListResourcesResponse{Watch: "w", Position: "w@e-1", Revision: 1, Count: 2, NextPageToken: "t",
			Resources: []*api.Resource{{Key: "a", Revision: 1, Value: []byte("1")}, {Key: "b", Revision: 1, Value: []byte("2")}}},
			`{"watch":"w","position":"w@e-1","revision":"1","count":2,"resources":[{"key":"a","revision":"1","value":1},{"key":"b","revision":"1","value":2}],"next_page_token":"t"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := marshaler{}.Marshal(test.message)
			if err != nil || string(got) != test.want+"\n" || !json.Valid(got) {
				t.Errorf("got %s, %v\nwant %s", got, err, test.want)
			}
			var out bytes.Buffer
			if err := (marshaler{}).NewEncoder(&out).Encode(test.message); err != nil || out.String() != test.want+"\n" {
				t.Errorf("encoder: %s, %v", out.String(), err)
			}
		})
	}
}

func TestMarshalOtherTypes(t *testing.T) {
	if b, err := (marshaler{}).Marshal(&emptypb.Empty{}); err == nil {
		t.Errorf("got %s", b)
	}
	if err := (marshaler{}).NewDecoder(strings.NewReader("{}")).Decode(&emptypb.Empty{}); err == nil {
		t.Error("a body became a message")
	}
	if err := (marshaler{}).NewEncoder(&bytes.Buffer{}).Encode(1); err == nil {
		t.Error("a number became a message")
	}
}

// FuzzAppendString checks that encoding/json reads back what was written.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\", "\n\x00\x7f", "é\u2028", "\xff", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := appendString([]byte("x"), s)
		var got string
		if err := json.Unmarshal(b[1:], &got); err != nil || b[0] != 'x' {
			t.Fatalf("%q: %v in %q", s, err, b)
		}
		if utf8.ValidString(s) && got != s {
			t.Errorf("%q came back as %q", s, got)
		}
		if bytes.ContainsAny(b, "\n\r") {
			t.Errorf("%q takes more than a line: %q", s, b)
		}
	})
}

func BenchmarkMarshalPage(b *testing.B) {
	p := &api.ListResourcesResponse{}
	for range 1000 {
		p.Resources = append(p.Resources, &api.Resource{Key: "default/web", Revision: 1042, Value: []byte(`"` + strings.Repeat("v", 300) + `"`)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (marshaler{}).Marshal(p); err != nil {
			b.Fatal(err)
		}
	}
}
