package gateway

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// historyPages returns the changes of all pages, the oldest first.
func historyPages(t *testing.T, r *rig, query string) (all []string) {
	t.Helper()
	next := ""
	for range 1000 {
		h := parseHistory(t, r.get(historyPath+"?"+query+"&before="+url.QueryEscape(next)))
		for _, c := range h.Changes {
			all = append(all, strings.TrimSpace(c.Type+" "+c.Key+" "+string(c.Value)))
		}
		if next = h.Next; next == "" {
			slices.Reverse(all)
			return all
		}
	}
	t.Fatal("there is no end")
	return nil
}

// replay makes changes to a state.
func replay(state map[string]string, changes []string) map[string]string {
	out := maps.Clone(state)
	for _, c := range changes {
		words := strings.SplitN(c, " ", 3)
		if delete(out, words[1]); words[0] == "upsert" {
			out[words[1]] = words[2]
		}
	}
	return out
}

// TestHistoryOfDeletesWithoutRevisions: where deletes have no revision of their own, whoever has a
// position gets from the history all that is new since then, deletes at the very revision of the
// position among them.
func TestHistoryOfDeletesWithoutRevisions(t *testing.T) {
	for seed := range uint64(gatewaytest.Length(8, 3)) {
		synctest.Test(t, func(t *testing.T) {
			r, random := newRig(t, Config{}, "services"), rand.New(rand.NewPCG(seed, 0))
			r.Do("services", func(sink stream.Sink) error {
				return errors.Join(sink.Reset("_e1"), sink.Upsert(gatewaytest.Resource("a", 5, `{"n":1}`)), sink.Commit(7))
			})
			synctest.Wait()
			type known struct {
				position string
				state    map[string]string
			}
			filters := []string{"", "value.n>1"}
			now := []map[string]string{{"a": `{"n":1}`}, {}}
			var all [2][]known
			for revision := uint64(8); revision < 30; {
				for i, filter := range filters {
					h := parseHistory(t, r.get(historyPath+"?limit=1&filter="+url.QueryEscape(filter)))
					all[i] = append(all[i], known{h.Position, maps.Clone(now[i])})
				}
				key := string(rune('a' + random.IntN(4)))
				if random.IntN(3) == 0 {
					at := revision - 1 // the upstream is idle
					r.Do("services", func(sink stream.Sink) error { return errors.Join(sink.Delete(key, 0), sink.Commit(at)) })
					delete(now[0], key)
					delete(now[1], key)
				} else {
					n := random.IntN(4)
					value := fmt.Sprintf(`{"n":%d}`, n)
					r.Commit("services", revision, gatewaytest.Resource(key, revision, value))
					revision++
					now[0][key] = value
					if delete(now[1], key); n > 1 {
						now[1][key] = value
					}
				}
				synctest.Wait()
			}
			for i, filter := range filters {
				narrow := fmt.Sprintf("limit=%d&filter=%s", 1+random.IntN(4), url.QueryEscape(filter))
				if got := replay(map[string]string{}, historyPages(t, r, narrow)); !maps.Equal(got, now[i]) {
					t.Errorf("seed %d, filter %q: all changes make %v, want %v", seed, filter, got, now[i])
				}
				for j := 0; j < len(all[i]); j += 3 {
					k := all[i][j]
					changes := historyPages(t, r, narrow+"&after="+url.QueryEscape(k.position))
					if got := replay(k.state, changes); !maps.Equal(got, now[i]) {
						t.Fatalf("seed %d, filter %q: %v at %s and %q make %v, want %v", seed, filter, k.state, k.position, changes, got, now[i])
					}
				}
			}
		})
	}
}

// TestHistoryAfterTheUpstreamWentBack: it has the changes of the new order alone, which are read on
// and by pages like those of any other; places in the former one are gone.
func TestHistoryAfterTheUpstreamWentBack(t *testing.T) {
	for _, narrow := range []string{"", "filter=value.n>0", "key=a", "prefix=a&fields=n"} {
		synctest.Test(t, func(t *testing.T) {
			r := lively(t)
			before := parseHistory(t, r.get(historyPath+"?limit=1&"+narrow))
			services, _ := r.Registry.Watch("services")
			for services.Snapshot().Epoch() == "e1" {
				r.Do("services", func(sink stream.Sink) error {
					return errors.Join(sink.Reset("e1"), sink.Upsert(gatewaytest.Resource("a", 3, `{"n":7}`)), sink.Commit(4))
				})
				synctest.Wait()
			}
			if epoch := services.Snapshot().Epoch(); !strings.HasPrefix(epoch, "e1~") {
				t.Fatalf("epoch %s", epoch)
			}
			for _, place := range []string{"before=" + before.Next, "after=" + before.Position} {
				if x := r.get(historyPath + "?" + narrow + "&" + place); x.StatusCode != 410 {
					t.Errorf("%s, %s: %d %s", narrow, place, x.StatusCode, x.Text())
				}
			}
			back := parseHistory(t, r.get(historyPath+"?"+narrow))
			if back.String() != `upsert a@3 {"n":7}` || back.CompleteSince.Revision != "4" {
				t.Errorf("%s: %s, since %s", narrow, back, back.CompleteSince.Revision)
			}
			r.Commit("services", 5, gatewaytest.Resource("a", 5, `{"n":8}`))
			r.Commit("services", 9, gatewaytest.Resource("a", 9, `{"n":9}`))
			synctest.Wait()
			if got := fmt.Sprint(historyPages(t, r, "limit=1&"+narrow)); got != `[upsert a {"n":7} upsert a {"n":8} upsert a {"n":9}]` {
				t.Errorf("%s: %s", narrow, got)
			}
			if got := fmt.Sprint(historyPages(t, r, "limit=1&"+narrow+"&after="+url.QueryEscape(back.Position))); got != `[upsert a {"n":8} upsert a {"n":9}]` {
				t.Errorf("%s: after %s: %s", narrow, back.Position, got)
			}
		})
	}
}
