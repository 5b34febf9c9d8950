package frame

import (
	"math"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

func TestEventData(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))
	for want, e := range map[string]stream.Event{
		`{"type":"reset","watch":"w","reason":"initial"}`:                                                                {Type: stream.Reset, Reason: "initial"},
		`{"type":"delete","watch":"w","key":"a/b","revision":"7"}`:                                                       {Type: stream.Delete, Resource: stream.Resource{Key: "a/b", Revision: 7}},
		`{"type":"end_of_snapshot","watch":"w","revision":"9","count":2}`:                                                {Type: stream.EndOfSnapshot, Revision: 9, Count: 2},
		`{"type":"end_of_snapshot","watch":"w","revision":"9","count":0,"resumed":true}`:                                 {Type: stream.EndOfSnapshot, Revision: 9, Resumed: true},
		`{"type":"bookmark","watch":"w","revision":"9"}`:                                                                 {Type: stream.Bookmark, Revision: 9},
		`{"type":"bookmark","watch":"w","revision":"9","horizon":"18446744073709551615"}`:                                {Type: stream.Bookmark, Revision: 9, Horizon: math.MaxUint64},
		`{"type":"bookmark","watch":"w","revision":"9","skipped":3}`:                                                     {Type: stream.Bookmark, Revision: 9, Skipped: 3},
		`{"type":"status","watch":"w","state":"in_sync"}`:                                                                {Type: stream.StatusChange, State: stream.InSync},
		`{"type":"status","watch":"w","state":"stale","since":"2026-01-02T02:04:05.678Z","reason":"two\nlines, \"so\""}`: {Type: stream.StatusChange, State: stream.Stale, Since: since, Reason: "two\nlines, \"so\""},
	} {
		e.Watch = "w"
		if got := string(AppendData(nil, e)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	hello := string(AppendHello(nil, "k3v9", "", 15*time.Second, []HelloWatch{{"services", false}, {"nodes", true}}))
	if want := `{"type":"hello","heartbeat_ms":15000,"instance":"k3v9","watches":[{"watch":"services","mode":"snapshot"},{"watch":"nodes","mode":"resume"}]}`; hello != want {
		t.Errorf("got %s", hello)
	}
	named := string(AppendHello(nil, "k3v9", "7XQ", 15*time.Second, []HelloWatch{{"services", false}}))
	if want := `{"type":"hello","heartbeat_ms":15000,"instance":"k3v9","stream":"7XQ","watches":[{"watch":"services","mode":"snapshot"}]}`; named != want {
		t.Errorf("got %s", named)
	}
	goodbye := string(AppendGoodbye(nil, stream.GoodbyeDraining, 4210*time.Millisecond))
	if want := `{"type":"goodbye","reason":"draining","retry_ms":4210}`; goodbye != want {
		t.Errorf("got %s", goodbye)
	}
}
