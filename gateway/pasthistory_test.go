package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// historyAnswer is the answer of a history.
type historyAnswer struct {
	Position      string
	CompleteSince struct {
		Revision string
		Time     time.Time
	} `json:"complete_since"`
	Changes []struct {
		Type, Key, Revision string
		CommittedAt         *time.Time `json:"committed_at"`
		Value               json.RawMessage
	}
	Next string
}

func parseHistory(t *testing.T, x *gatewaytest.Exchange) historyAnswer {
	t.Helper()
	var h historyAnswer
	if over, err := x.Over(); !over || err != nil || x.StatusCode != 200 {
		t.Fatalf("answer %d, over %t, %v: %s", x.StatusCode, over, err, x.Text())
	}
	if err := json.Unmarshal([]byte(x.Text()), &h); err != nil {
		t.Fatalf("%v in %s", err, x.Text())
	}
	return h
}

// String is the changes on one line.
func (h historyAnswer) String() string {
	var out []string
	for _, c := range h.Changes {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s@%s %s", c.Type, c.Key, c.Revision, c.Value)))
	}
	return strings.Join(out, ", ")
}

const historyPath = "/v1/watches/services/history"

// lively is a watch with some history.
func lively(t *testing.T) *rig {
	r := newRig(t, Config{}, "services")
	r.Prime("services", 7, gatewaytest.Resource("a", 5, `{"n":1}`))
	for revision, n := range []string{8: `2`, 9: `3`, 10: `1`} {
		if n != "" {
			time.Sleep(2 * time.Second)
			r.Commit("services", uint64(revision), gatewaytest.Resource("a", uint64(revision), `{"n":`+n+`}`))
			synctest.Wait()
		}
	}
	r.Commit("services", 11, gatewaytest.Resource("b", 11, `{"n":9}`))
	synctest.Wait()
	return r
}

func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := lively(t)
		for query, want := range map[string]string{
			"":                         `upsert b@11 {"n":9}, upsert a@10 {"n":1}, upsert a@9 {"n":3}, upsert a@8 {"n":2}, upsert a@5 {"n":1}`,
			"key=b":                    `upsert b@11 {"n":9}`,
			"key=c":                    ``,
			"key=a&limit=2":            `upsert a@10 {"n":1}, upsert a@9 {"n":3}`,
			"after=services@e1-9":      `upsert b@11 {"n":9}, upsert a@10 {"n":1}`,
			"filter=value.n>1&limit=9": `upsert b@11 {"n":9}, delete a@10, upsert a@9 {"n":3}, upsert a@8 {"n":2}`,
			"prefix=b&fields=x":        `upsert b@11 {}`,
		} {
			h := parseHistory(t, r.get(historyPath+"?"+query))
			if h.String() != want {
				t.Errorf("%s: got\n%s\nwant\n%s", query, h, want)
			}
			if h.CompleteSince.Revision != "7" {
				t.Errorf("%s: complete since %+v", query, h.CompleteSince)
			}
		}
	})
}

// TestHistoryTimes: what was committed has the time of its commit, and what a snapshot told has
// none.
func TestHistoryTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := parseHistory(t, lively(t).get(historyPath+"?key=a"))
		for i, want := range []time.Duration{6 * time.Second, 4 * time.Second, 2 * time.Second} {
			if at := h.Changes[i].CommittedAt; at == nil || !at.Equal(began.Add(want)) {
				t.Errorf("%s: committed at %v, want %v", h.Changes[i].Revision, at, began.Add(want))
			}
		}
		if at := h.Changes[3].CommittedAt; at != nil {
			t.Errorf("what the snapshot told was committed at %v", at)
		}
	})
}

// TestHistoryPages: pages go on where the one before ended, also while there are new changes, and
// until the watch begins again.
func TestHistoryPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := lively(t)
		var all []string
		next := ""
		for range 5 {
			h := parseHistory(t, r.get(historyPath+"?limit=1&before="+url.QueryEscape(next)))
			r.Commit("services", 20+uint64(len(all)), gatewaytest.Resource("c", 20+uint64(len(all)), `1`))
			synctest.Wait()
			all, next = append(all, h.String()), h.Next
		}
		if got := strings.Join(all, " "); got != `upsert b@11 {"n":9} upsert a@10 {"n":1} upsert a@9 {"n":3} upsert a@8 {"n":2} upsert a@5 {"n":1}` {
			t.Error(got)
		}
		first := parseHistory(t, r.get(historyPath+"?limit=1"))
		r.Do("services", func(sink stream.Sink) error {
			return errors.Join(sink.Reset("e2"), sink.Upsert(gatewaytest.Resource("z", 3, `1`)), sink.Commit(3))
		})
		synctest.Wait()
		for _, place := range []string{"before=" + first.Next, "after=" + first.Position} {
			if x := r.get(historyPath + "?" + place); x.StatusCode != 410 {
				t.Errorf("%s: %d %s", place, x.StatusCode, x.Text())
			}
		}
	})
}

// TestHistoryRefusals: what is wrong is named.
func TestHistoryRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := lively(t)
		for query, want := range map[string]string{
			"limit=1001":                         "limit",
			"before=%21":                         "before",
			"before=" + strings.Repeat("a", 400): "before",
			"after=x":                            "after",
			"after=hosts@e1-5":                   "after",
			"key=%21&key_encoding=base64":        "key",
			"filter=(":                           "filter",
			"since=3":                            "since",
		} {
			x := r.get(historyPath + "?" + query)
			if x.StatusCode != 400 || !strings.Contains(x.Text(), `"parameter":"`+want) {
				t.Errorf("%s: %d %s", query, x.StatusCode, x.Text())
			}
		}
	})
}
