package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// scripted is an upstream whose stream is what a test writes, and which answers requests about the digest of its state.
type scripted struct {
	late    time.Duration // its answers; static
	resumed string        // what a stream that resumes sends before its end_of_snapshot, after the first stream has ended; "": that does not end. Static
	mu      sync.Mutex    // guards the following fields
	state   map[string]stream.Resource
	streams []string // the Last-Event-ID of each
	queries []url.Values
	asked   []string                                                       // paths of other requests
	refuse  func(w http.ResponseWriter)                                    // answers these; nil: it answers as it should
	live    func(s *scripted, after func(d time.Duration, text ...string)) // writes a stream after its snapshot, or after where it resumes
}

// has sets a resource; an encoding may follow.
func (s *scripted) has(key string, revision uint64, value string, encoding ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		s.state = map[string]stream.Resource{}
	}
	s.state[key] = stream.Resource{Key: key, Revision: revision, Value: []byte(value), Encoding: strings.Join(encoding, "")}
}

func (s *scripted) lacks(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state, key)
}

func (s *scripted) digest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.digestLocked()
}

func (s *scripted) digestLocked() string {
	var d digest.Digest
	for _, r := range s.state {
		d = d.Add(digest.Of(r.Key, r.Value, r.Encoding))
	}
	return d.String()
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/events") {
		s.stream(w, r)
		return
	}
	time.Sleep(s.late)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.Path)
	_, rest, _ := strings.Cut(r.URL.Path, "/digests/")
	of, part, _ := strings.Cut(rest, "/")
	switch {
	case s.refuse != nil:
		s.refuse(w)
	case of != s.digestLocked():
		w.WriteHeader(http.StatusGone)
	default:
		answer := map[string]any{"digest": of}
		switch part {
		case "":
			table := digest.NewTable(uint64(len(s.state)))
			for _, r := range s.state {
				table.Add(digest.OfKey(r.Key), digest.Of(r.Key, r.Value, r.Encoding))
			}
			answer["buckets"], answer["table"] = len(table), table.Bytes()
		case "keys":
			keys := []map[string]string{}
			for _, r := range s.state {
				keys = append(keys, map[string]string{
					"key": r.Key, "revision": strconv.FormatUint(r.Revision, 10), "hash": fmt.Sprintf("%016x", uint64(digest.Of(r.Key, r.Value, r.Encoding))),
				})
			}
			answer["keys"], answer["next_page_token"] = keys, ""
		default:
			found, keys := []json.RawMessage{}, r.URL.Query()["key"]
			for _, key := range keys {
				if r, has := s.state[key]; has {
					found = append(found, fmt.Appendf(nil, `{"key":%q,"revision":"%d","encoding":%q,"value":%s}`, r.Key, r.Revision, r.Encoding, r.Value))
				}
			}
			answer["resources"], answer["read"] = found, len(keys)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// stream sends a snapshot, the digest of the state at an unknown position, or nothing at another one, and then what a test writes.
func (s *scripted) stream(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	at, query := r.Header.Get("Last-Event-ID"), r.URL.Query()
	s.streams, s.queries = append(s.streams, at), append(s.queries, query)
	revision := uint64(2)
	for _, r := range s.state {
		revision = max(revision, r.Revision)
	}
	text := []string{hello}
	switch byDigest := query.Get("resume") == "digest"; {
	case strings.HasPrefix(at, "w@e-"):
		text = append(text, s.resumed, event("end_of_snapshot", fmt.Sprintf(`,"revision":"%d","count":%d,"resumed":true`, revision, len(s.state)), at))
	case at != "" && byDigest:
		fields := fmt.Sprintf(`,"revision":"%d","count":%d,"resumed":true,"verify":true,"digest":%q`, revision, len(s.state), s.digestLocked())
		text = append(text, event("end_of_snapshot", fields, fmt.Sprint("w@e-", revision)))
	default:
		text = append(text, reset(fmt.Sprint("w@e-0/", revision)))
		all := slices.SortedFunc(maps.Values(s.state), func(a, b stream.Resource) int { return int(a.Revision) - int(b.Revision) })
		for _, r := range all {
			text = append(text, upsertAs(r))
		}
		text = append(text, endOfSnapshot(int(revision), len(all), fmt.Sprint("w@e-", revision)))
	}
	s.mu.Unlock()
	write(w, text...)
	if s.live != nil {
		s.live(s, func(d time.Duration, text ...string) {
			select {
			case <-time.After(d):
				write(w, text...)
			case <-r.Context().Done():
			}
		})
	}
	if s.resumed == "" || at != "" {
		<-r.Context().Done()
	}
}

func (s *scripted) requests() (streams []string, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.streams), len(s.asked)
}

func upsertAs(r stream.Resource) string {
	encoding := ""
	if r.Encoding != "" {
		encoding = fmt.Sprintf(`,"encoding":%q`, r.Encoding)
	}
	return event("upsert", fmt.Sprintf(`,"key":%q,"revision":"%d"%s,"value":%s`, r.Key, r.Revision, encoding, r.Value), "")
}

func bookmarkWith(revision int, digest, more string) string {
	return event("bookmark", fmt.Sprintf(`,"revision":"%d","digest":%q%s`, revision, digest, more), fmt.Sprint("w@e-", revision))
}

// followed runs f in a bubble, with a watch that follows the upstream.
func followed(t *testing.T, s *scripted, d *view.Definition, f func(t *testing.T, w *watch.Watch)) {
	synctest.Test(t, func(t *testing.T) {
		_, u, stop := serve(t, Config{}, s.ServeHTTP)
		defer stop()
		source, err := u.Source("w", d)
		if err != nil {
			t.Fatal(err)
		}
		registry := watch.NewRegistry()
		defer registry.Close()
		w, err := registry.Add(watch.Config{Name: "w", Source: source})
		if err != nil {
			t.Fatal(err)
		}
		f(t, w)
	})
}

// differences says how a watch differs from the upstream; "": it does not.
func (s *scripted) differences(w *watch.Watch) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	left := maps.Clone(s.state)
	for r := range w.Snapshot().Resources() {
		if is, has := left[r.Key]; !has || is.Revision != r.Revision || is.Encoding != r.Encoding || string(is.Value) != string(r.Value) {
			found = append(found, fmt.Sprintf("%s is %s at %d", r.Key, r.Value, r.Revision))
		}
		delete(left, r.Key)
	}
	for key := range left {
		found = append(found, key+" is missing")
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// TestRepairedAtABookmark: an event of a live stream is lost, or has another value. The next bookmark has another digest than what
// the gateway has, which is then repaired beside the stream.
func TestRepairedAtABookmark(t *testing.T) {
	for _, c := range []struct {
		name, sent, wrong string
		asked             int
	}{
		{"a delete is lost", "", "gone is 1 at 3", 2},
		{"an upsert is lost", remove("gone", 7, "w@e-7"), "changed is 1 at 2, new is missing", 3},
		{"a value is another one", upsert("changed", 5, "3", "") + upsert("new", 6, `"bmV3"`, "") + remove("gone", 7, "w@e-7"), "changed is 3 at 5, new is \"bmV3\" at 6", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scripted{}
			s.has("changed", 2, "1")
			s.has("gone", 3, "1")
			s.has("kept", 4, `"a&b"`)
			s.live = func(s *scripted, after func(time.Duration, ...string)) {
				after(time.Second)
				if c.asked > 2 {
					s.has("changed", 5, "2")
					s.has("new", 6, `"bmV3"`, "base64")
				}
				s.lacks("gone")
				after(0, c.sent)
				after(time.Second, bookmarkWith(7, s.digest(), ""))
				after(time.Second)
				s.has("later", 8, "8")
				after(0, upsert("later", 8, "8", "w@e-8"), bookmarkWith(8, s.digest(), ""))
			}
			followed(t, s, nil, func(t *testing.T, w *watch.Watch) {
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				if got := s.differences(w); got != c.wrong {
					t.Fatalf("before the bookmark: %s, want %s", got, c.wrong)
				}
				before := w.Snapshot().Epoch()
				time.Sleep(time.Second)
				synctest.Wait()
				streams, asked := s.requests()
				if got := s.differences(w); got != "" || w.Status().State != stream.InSync || w.Snapshot().Revision() != 7 {
					t.Errorf("after the bookmark: %s, %v at %d", got, w.Status(), w.Snapshot().Revision())
				}
				if len(streams) != 1 || asked != c.asked {
					t.Errorf("%d streams, %d requests for what differs, want %d", len(streams), asked, c.asked)
				}
				if now := w.Snapshot().Epoch(); now == before {
					t.Error("the positions of before, which name states that never were, are valid")
				}
				if n := w.Stats().DigestMismatches; n != 1 {
					t.Errorf("%d mismatches are counted", n)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if got := s.differences(w); got != "" || w.Stats().DigestMismatches != 1 {
					t.Errorf("later: %s, %d mismatches", got, w.Stats().DigestMismatches)
				}
			})
		})
	}
}

// TestWhatComesMeanwhileWaits: what comes while a difference is looked for is handled after that, and nothing of it is lost.
func TestWhatComesMeanwhileWaits(t *testing.T) {
	s := &scripted{late: time.Second}
	s.has("a", 2, "1")
	s.has("b", 3, "1")
	s.live = func(s *scripted, after func(time.Duration, ...string)) {
		after(time.Second)
		s.lacks("b")
		after(0, bookmarkWith(4, s.digest(), ""), upsert("c", 5, "5", "w@e-5"), upsert("a", 6, "6", "w@e-6"))
	}
	followed(t, s, nil, func(t *testing.T, w *watch.Watch) {
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		if v := w.Snapshot(); v.Revision() != 4 || w.Status().State != stream.Resyncing {
			t.Errorf("while it is verified: at %d, %v", v.Revision(), w.Status())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		s.has("c", 5, "5")
		s.has("a", 6, "6")
		if got := s.differences(w); got != "" || w.Status().State != stream.InSync {
			t.Errorf("%s, %v", got, w.Status())
		}
	})
}

// TestRepairWithAnotherRequest: the state with the digest is gone before it is asked about, or the request is repeated since another watch joins
// it. The next request is sent the digest of a state that is kept.
func TestRepairWithAnotherRequest(t *testing.T) {
	for name, late := range map[string]time.Duration{"the state is gone": 0, "another watch joins": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{late: late}
			s.has("a", 2, "1")
			s.has("b", 3, "1")
			s.live = func(s *scripted, after func(time.Duration, ...string)) {
				if streams, _ := s.requests(); len(streams) > 1 {
					return
				}
				after(time.Second)
				s.lacks("b")
				s.has("c", 4, "4")
				after(0, bookmarkWith(4, s.digest(), ""))
				if late == 0 {
					s.has("c", 5, "5")
				}
			}
			synctest.Test(t, func(t *testing.T) {
				_, u, stop := serve(t, Config{}, s.ServeHTTP)
				defer stop()
				registry := watch.NewRegistry()
				defer registry.Close()
				w, err := registry.Add(watch.Config{Name: "w", Source: sourceOf(t, u, "w")})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				if late > 0 {
					if _, err := registry.Add(watch.Config{Name: "v", Source: sourceOf(t, u, "v")}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(28 * time.Second)
				synctest.Wait()
				streams, _ := s.requests()
				if want := []string{"", "w@none-0"}; !slices.Equal(streams, want) {
					t.Errorf("requests at %q, want %q", streams, want)
				}
				if got := s.differences(w); got != "" || w.Status().State != stream.InSync {
					t.Errorf("%s, %v", got, w.Status())
				}
			})
		})
	}
}

// TestNotCompared: a bookmark that is about another state than that of the gateway, or whose upstream has no digests, is
// not compared.
func TestNotCompared(t *testing.T) {
	const wrong = "5-00000000000000020e028795aa10cb6f"
	for name, text := range map[string]string{
		"no digest":    bookmark(7, "w@e-7"),
		"a resume":     "",
		"horizon":      bookmarkWith(7, wrong, `,"horizon":"6"`),
		"conflated":    bookmarkWith(7, wrong, `,"conflated":"9"`),
		"half of them": event("bookmark", fmt.Sprintf(`,"revision":"7","digest":%q`, wrong), "w@e-5/7"),
		"another one":  event("bookmark", fmt.Sprintf(`,"revision":"6","digest":%q`, wrong), "w@e-7"),
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			s.has("a", 2, "1")
			s.live = func(_ *scripted, after func(time.Duration, ...string)) { after(0, text) }
			if text == "" {
				s.resumed = event("bookmark", fmt.Sprintf(`,"revision":"2","digest":%q`, wrong), "")
			}
			followed(t, s, nil, func(t *testing.T, w *watch.Watch) {
				time.Sleep(10 * time.Second)
				synctest.Wait()
				streams, asked := s.requests()
				if resumed := len(streams) > 1; resumed != (text == "") {
					t.Errorf("requests at %q", streams)
				}
				if asked > 0 || w.Stats().DigestMismatches > 0 {
					t.Errorf("%d requests, %d mismatches", asked, w.Stats().DigestMismatches)
				}
			})
		})
	}
}

// TestRepairOfAPart: a watch with a prefix is compared with the same part of the upstream, and asks about that.
func TestRepairOfAPart(t *testing.T) {
	d, err := view.Parse(view.Params{Prefix: "a/"})
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{}
	s.has("a/1", 2, "1")
	s.has("a/2", 3, "1")
	s.live = func(s *scripted, after func(time.Duration, ...string)) {
		after(0, bookmarkWith(3, s.digest(), ""))
		after(time.Second)
		s.lacks("a/1")
		after(0, bookmarkWith(4, s.digest(), ""))
	}
	followed(t, s, d, func(t *testing.T, w *watch.Watch) {
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if _, asked := s.requests(); asked > 0 {
			t.Errorf("%d requests although nothing differs", asked)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.differences(w); got != "" || w.Stats().DigestMismatches != 1 {
			t.Errorf("%s, %d mismatches", got, w.Stats().DigestMismatches)
		}
	})
}

// TestDifferenceThatStays: an upstream says another digest again and again. It is not asked about that more often than now and then, and
// the watch goes on.
func TestDifferenceThatStays(t *testing.T) {
	const wrong = "5-00000000000000020e028795aa10cb6f"
	for _, c := range []struct {
		name    string
		refuse  func(w http.ResponseWriter)
		streams int // at most, in an hour
		asked   int
	}{
		{"it does not have the state", nil, 12, 60},
		{"its answers are nonsense", func(w http.ResponseWriter) { fmt.Fprint(w, `{"buckets":7,"table":"AAAA"}`) }, 20, 20},
		{"it has no answer for now", func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, 1, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scripted{refuse: c.refuse}
			s.has("a", 2, "1")
			began := time.Now()
			s.live = func(s *scripted, after func(time.Duration, ...string)) {
				for range 240 {
					after(15*time.Second, bookmarkWith(2, wrong, ""))
				}
			}
			followed(t, s, nil, func(t *testing.T, w *watch.Watch) {
				time.Sleep(time.Second)
				epoch := w.Snapshot().Epoch()
				time.Sleep(time.Hour)
				synctest.Wait()
				streams, asked := s.requests()
				t.Logf("%d streams and %d requests in %v, %d mismatches", len(streams), asked, time.Since(began), w.Stats().DigestMismatches)
				if len(streams) > c.streams || asked > c.asked || asked == 0 {
					t.Errorf("%d streams, %d requests: want at most %d and %d", len(streams), asked, c.streams, c.asked)
				}
				if got := s.differences(w); got != "" || w.Status().State != stream.InSync || w.Snapshot().Epoch() != epoch {
					t.Errorf("%s, %v, epoch %s after %s", got, w.Status(), w.Snapshot().Epoch(), epoch)
				}
			})
		})
	}
}

// TestAlteredAgainAndAgain: each change of an hour arrives with another value. It is repaired now and then, and once no more are
// altered, nothing differs.
func TestAlteredAgainAndAgain(t *testing.T) {
	s := &scripted{}
	s.has("a", 2, "1")
	s.live = func(s *scripted, after func(time.Duration, ...string)) {
		for i := range 120 {
			revision := 3 + i
			after(30 * time.Second)
			s.has("a", uint64(revision), fmt.Sprint(revision))
			after(0, upsert("a", revision, "0", fmt.Sprint("w@e-", revision)), bookmarkWith(revision, s.digest(), ""))
		}
		after(30 * time.Second)
		s.has("a", 200, "200")
		after(0, upsert("a", 200, "200", "w@e-200"), bookmarkWith(200, s.digest(), ""))
	}
	followed(t, s, nil, func(t *testing.T, w *watch.Watch) {
		time.Sleep(time.Hour)
		synctest.Wait()
		streams, asked := s.requests()
		repairs := w.Stats().Resyncs["epoch_changed"]
		t.Logf("%d requests, %d repairs, %d mismatches", asked, repairs, w.Stats().DigestMismatches)
		if len(streams) != 1 || repairs < 2 || repairs > 5 || asked != 3*int(repairs) {
			t.Errorf("%d streams, %d requests, %d repairs", len(streams), asked, repairs)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.differences(w); got != "" || w.Status().State != stream.InSync {
			t.Errorf("at the end: %s, %v", got, w.Status())
		}
	})
}
