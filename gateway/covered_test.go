package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// told is an event as it was received.
type told struct {
	Type, Watch, Key, Revision, ID string
	Count                          int
}

// toldIn returns the events of a stream as NDJSON.
func toldIn(t *testing.T, text string) (all []told) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e told
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, e)
	}
	return all
}

// eventsOf returns the events of a stream of Server-Sent Events, each id as an event of its own.
func eventsOf(t *testing.T, text string) (all []told) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		if data, is := strings.CutPrefix(line, "data: "); is {
			lines = append(lines, data)
		} else if id, is := strings.CutPrefix(line, "id: "); is {
			lines = append(lines, fmt.Sprintf("{\"type\":\"position\",\"id\":%q}\n", strings.TrimSpace(id)))
		}
	}
	return toldIn(t, strings.Join(lines, ""))
}

// apply applies an event to the keys of a watch.
func (e told) apply(keys map[string]bool) {
	switch e.Type {
	case "reset":
		clear(keys)
	case "upsert":
		keys[e.Key] = true
	case "delete":
		delete(keys, e.Key)
	}
}

// bigTransaction has n resources of 64 KiB each.
func bigTransaction(n int, revision uint64) (all []stream.Resource) {
	for i := range n {
		all = append(all, gatewaytest.Resource(fmt.Sprintf("k%03d", i), revision, `"`+strings.Repeat("x", 64<<10)+`"`))
	}
	return all
}

// TestIDAmongTheDeletesOfACatchUp: a client that applies what it has when an id comes, and is cut
// off right after it, wherever that is, has a state that a replica at that position can complete.
func TestIDAmongTheDeletesOfACatchUp(t *testing.T) {
	const n, gone = 2000, 1500
	synctest.Test(t, func(t *testing.T) {
		var all []stream.Resource
		for i := range n {
			all = append(all, gatewaytest.Resource(fmt.Sprintf("k%04d", i), 5, `1`))
		}
		ahead, behind := newRig(t, Config{StreamSettings: StreamSettings{AheadWait: time.Millisecond}}, "services"), newRig(t, Config{StreamSettings: StreamSettings{AheadWait: time.Millisecond}}, "services")
		ahead.Prime("services", 10, all...)
		behind.Prime("services", 10, all...)
		for i := range gone {
			ahead.Do("services", func(sink stream.Sink) error {
				revision := uint64(11 + i)
				return errors.Join(sink.Delete(fmt.Sprintf("k%04d", i), revision), sink.Commit(revision))
			})
		}
		synctest.Wait()
		const path = "/v1/watches/services/events?until=end_of_snapshot"
		for accept, parse := range map[string]func(*testing.T, string) []told{"text/event-stream": eventsOf, "application/x-ndjson": toldIn} {
			keys, ids := map[string]bool{}, 0
			for _, r := range all {
				keys[r.Key] = true
			}
			for _, e := range parse(t, ahead.get(path, "Accept: "+accept, "Last-Event-ID: services@e1-10").Text()) {
				e.apply(keys)
				if e.Type != "position" {
					continue
				}
				ids++
				wantCompleted(t, behind.get(path, "Accept: application/x-ndjson", "Last-Event-ID: "+e.ID).Text(), keys)
			}
			if ids == 0 || len(keys) != n-gone {
				t.Errorf("%s: %d ids, %d resources", accept, ids, len(keys))
			}
		}
	})
}

// wantCompleted checks that a stream that resumes with keys ends with as many as it says.
func wantCompleted(t *testing.T, text string, keys map[string]bool) {
	t.Helper()
	keys = maps.Clone(keys)
	for _, e := range toldIn(t, text) {
		e.apply(keys)
		if e.Type == "end_of_snapshot" && e.Count != len(keys) {
			t.Errorf("%d resources at revision %s, where there are %d", len(keys), e.Revision, e.Count)
		}
	}
}

// TestNoIDOfAnotherWatchInsideATransaction: an id speaks for all watches of its stream.
func TestNoIDOfAnotherWatchInsideATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 80
		r := newRig(t, Config{}, "a", "b")
		r.Prime("a", 7, gatewaytest.Resource("k000", 7, `1`))
		r.Prime("b", 1, gatewaytest.Resource("x", 1, `1`))
		synctest.Wait()
		c := r.dial(rawGet("/v1/events?watch=a&watch=b"))
		readUntil(t, c, `"watch":"b","revision":"1","count":1`)
		readUntil(t, c, "id: ")
		synctest.Wait()
		r.Commit("a", 9, bigTransaction(n, 9)...) // the client takes nothing for a moment
		synctest.Wait()
		r.Commit("b", 2, gatewaytest.Resource("x", 2, `2`))
		synctest.Wait()
		for upserts := 0; upserts < n; {
			line, err := c.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.Contains(line, `"type":"upsert","watch":"a"`):
				upserts++
			case strings.HasPrefix(line, "id: ") && upserts > 0 && upserts < n:
				t.Errorf("%s after %d of the %d changes of one transaction of a", strings.TrimSpace(line), upserts, n)
			}
		}
		readUntil(t, c, "id: a@e1-9,b@e1-2")
	})
}

// TestNoIDOfAnotherWatchWhileATransactionWaits: a client that is too slow for a large transaction
// waits for its turn in the middle of it, and is sent the changes of another watch meanwhile.
func TestNoIDOfAnotherWatchWhileATransactionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 80
		r := newRig(t, Config{StreamSettings: StreamSettings{SnapshotBudget: 1, WriteTimeout: time.Minute, MinRate: -1}}, "a", "b", "c")
		r.Prime("a", 7, gatewaytest.Resource("k000", 7, `1`))
		r.Prime("b", 1, gatewaytest.Resource("x", 1, `1`))
		r.Prime("c", 1, gatewaytest.LargeOnes(1000, 1)...)
		synctest.Wait()
		c := r.dial(rawGet("/v1/events?watch=a&watch=b"))
		readUntil(t, c, `"watch":"b","revision":"1","count":1`)
		readUntil(t, c, "id: ")
		synctest.Wait()
		r.Commit("a", 9, bigTransaction(n, 9)...)
		synctest.Wait()
		stalled := stall(r, "/v1/events?watch=c") // it gets the turn of the other, which takes nothing
		r.Commit("b", 2, gatewaytest.Resource("x", 2, `2`))
		synctest.Wait()
		time.AfterFunc(5*time.Second, func() { stalled.Close() })
		inside := false
		for upserts := 0; upserts < n; {
			line, err := c.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			switch within := upserts > 0 && upserts < n; {
			case strings.Contains(line, `"type":"upsert","watch":"a"`):
				upserts++
			case strings.Contains(line, `"type":"upsert","watch":"b"`):
				inside = inside || within
			case strings.HasPrefix(line, "id: ") && within:
				t.Errorf("%s after %d of the %d changes of one transaction of a", strings.TrimSpace(line), upserts, n)
			}
		}
		if !inside {
			t.Error("the change of b did not come while the transaction waited")
		}
		readUntil(t, c, "id: a@e1-9,b@e1-2")
	})
}

// TestTwoWatchesInTransactionsHaveIDs: a client that is slow for two watches, both of which change in
// large transactions all the time, is at a place with an id after each of them.
func TestTwoWatchesInTransactionsHaveIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, rounds = 40, 4
		r := newRig(t, Config{}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		synctest.Wait()
		c := r.dial(rawGet("/v1/events?watch=a&watch=b"))
		readUntil(t, c, `"watch":"b","revision":"1","count":0`)
		readUntil(t, c, "id: ")
		synctest.Wait()
		r.Commit("a", 2, bigTransaction(n, 2)...)
		synctest.Wait()
		r.Commit("b", 2, bigTransaction(n, 2)...)
		at := map[string]int{"a": 0, "b": 0}
		revision := uint64(2)
		ids := 0
		for ids < rounds {
			line, err := c.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			for watch := range at {
				if !strings.Contains(line, `"type":"upsert","watch":"`+watch+`"`) {
					continue
				}
				if at[watch]++; at[watch] == n/2 { // the other one is never at rest
					revision++
					other := map[string]string{"a": "b", "b": "a"}[watch]
					r.Commit(other, revision, bigTransaction(n, revision)...)
					at[other] = 0
				}
			}
			if strings.HasPrefix(line, "id: ") {
				ids++
			}
			if revision > 20 {
				t.Fatalf("%d ids in %d transactions", ids, revision)
			}
		}
	})
}

// appliedPoll applies the events of a long poll to keys.
func appliedPoll(t *testing.T, c changes, keys map[string]bool) (types []string) {
	t.Helper()
	for _, raw := range c.Events {
		var e told
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		e.apply(keys)
		types = append(types, e.Type)
	}
	return types
}

// TestLongPollHasWholeTransactions, however large they are.
func TestLongPollHasWholeTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		poll := make(chan *gatewaytest.Exchange)
		go func() { poll <- r.get(pollPath + "?after=services@e1-7&wait=20s") }()
		time.Sleep(time.Second)
		synctest.Wait()
		r.Commit("services", 9, bigTransaction(n, 9)...)
		x := <-poll
		synctest.Wait()
		keys := map[string]bool{}
		c := parsePoll(t, x.Text())
		appliedPoll(t, c, keys)
		if len(keys) != n || c.Position != "services@e1-9" {
			t.Errorf("%d of the %d changes of one transaction, and the position %s", len(keys), n, c.Position)
		}
	})
}

// TestLongPollHasWholeCatchUps: one that comes with a position, and waits for its turn among large
// snapshots, has all of its catch-up.
func TestLongPollHasWholeCatchUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gone = 1500
		r := newRig(t, Config{StreamSettings: StreamSettings{SnapshotBudget: 1, WriteTimeout: time.Minute}}, "services", "a")
		var all []stream.Resource
		for i := range gone {
			all = append(all, gatewaytest.Resource(fmt.Sprintf("d%04d", i), 5, `1`))
		}
		r.Prime("services", 7, all...)
		r.Prime("a", 1, gatewaytest.LargeOnes(100, 1)...)
		r.Commit("services", 9, bigTransaction(40, 9)...)
		for i := range gone {
			r.Do("services", func(sink stream.Sink) error {
				revision := uint64(11 + i)
				return errors.Join(sink.Delete(fmt.Sprintf("d%04d", i), revision), sink.Commit(revision))
			})
		}
		synctest.Wait()
		stall(r, "/v1/events?watch=a")
		keys := map[string]bool{}
		c := parsePoll(t, r.get(pollPath+"?after=services@e1-7&wait=0s").Text())
		types := appliedPoll(t, c, keys)
		if len(keys) != 40 || c.Position != "services@e1-1510" || !slices.Contains(types, "delete") || !slices.Contains(types, "end_of_snapshot") {
			t.Errorf("%d events, %d resources, and the position %s", len(types), len(keys), c.Position)
		}
	})
}
