package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestDigestVectors has the vectors of docs/protocol.md.
func TestDigestVectors(t *testing.T) {
	var sum digest
	for _, v := range []struct {
		r    Resource
		want string
	}{
		{Resource{Key: "a", Value: json.RawMessage("1")}, "68cd357d0b93fb08 d24ec4f1"},
		{Resource{Key: "shopping/milk", Value: json.RawMessage(`{"text":"two litres"}`)}, "633a42d209907abb 70e8c709"},
		{Resource{Key: "b", Value: json.RawMessage(`"aGk="`), Encoding: "base64"}, "82b4160a5f09160c 78452aa1"},
		{Resource{Key: "/wA=", KeyEncoding: "base64", Value: json.RawMessage("null")}, "67fa0b57bccfee4c 232a32cf"},
		{Resource{Key: "日本", Value: json.RawMessage(`"語"`)}, "574cede479135154 80c2e40b"},
	} {
		if got := fmt.Sprintf("%016x %08x", v.r.hash(), v.r.keyHash()); got != v.want {
			t.Errorf("%s: %s, want %s", v.r.Key, got, v.want)
		}
		sum = sum.add(v.r.hash())
	}
	if got, want := sum.String(), "5-00000000000000020e028795aa10cb6f"; got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	if got := sum.sub(1 << 63).add(1 << 63); got != sum {
		t.Errorf("%v, want %v", got, sum)
	}
}

const (
	heldBefore = "event: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000}\n\n" +
		"event: reset\ndata: {\"type\":\"reset\",\"watch\":\"w\",\"reason\":\"initial\"}\nid: w@a-0/1\n\n" +
		"event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"w\",\"key\":\"a\",\"revision\":\"1\",\"value\":1}\n\n" +
		"event: end_of_snapshot\ndata: {\"type\":\"end_of_snapshot\",\"watch\":\"w\",\"revision\":\"1\",\"count\":1}\nid: w@a-1\n\n"
	comesBack = "event: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000}\n\n" +
		"event: end_of_snapshot\ndata: {\"type\":\"end_of_snapshot\",\"watch\":\"w\",\"revision\":\"5\",\"count\":2,\"resumed\":true,\"verify\":true,\"digest\":\"2-00000000000000000000000000000001\"}\nid: w@b-5\n\n"
)

const (
	endless = "endless"
	tooMuch = 128 << 20
)

// writeEndless writes an answer until the client has had enough, or tooMuch, and returns how much it took.
func writeEndless(w http.ResponseWriter) (sent int) {
	_, _ = w.Write([]byte(`{"table":"`))
	for chunk := bytes.Repeat([]byte("A"), 1<<20); sent < tooMuch; sent += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			break
		}
	}
	return sent
}

// TestNoDigestIsEverRight: a client whose snapshot has another digest as well goes on without digests.
func TestNoDigestIsEverRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		wrong := strings.Replace(heldBefore, "\"count\":1", "\"count\":1,\"digest\":\"1-00000000000000000000000000000001\"", 1)
		c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/digests/") {
				http.Error(w, "{}", http.StatusNotFound)
				return
			}
			asked = append(asked, r.URL.Query().Get("digest")+" "+r.Header.Get("Last-Event-ID"))
			stalls(wrong)(w, r) // also those that have not asked for a digest
		})
		defer stop()
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if replica.Len() != 1 || replica.Revision() != "1" || !replica.Verified().IsZero() {
			t.Errorf("it shows %d resources at %q, verified at %v", replica.Len(), replica.Revision(), replica.Verified())
		}
		asked = slices.Compact(asked) // the last one was silent for too long
		if want := []string{"1 ", " ", " w@a-1"}; !slices.Equal(asked, want[:max(2, min(len(asked), len(want)))]) {
			t.Errorf("the requests are %q, want %q", asked, want)
		}
	})
}

// TestServerWithoutDigests: a server that refuses digests is asked for them once by all loops of a client, and again after some time.
func TestServerWithoutDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var refused []time.Duration
		streams := 0
		c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("digest") && len(refused) < 2 {
				refused = append(refused, time.Since(began))
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"status":400,"detail":"unknown","parameter":"digest"}`)
				return
			}
			if streams++; r.URL.Query().Has("digest") != (len(refused) == 2 && time.Since(began) >= 2*undigestedFor) {
				t.Errorf("after %v a stream has digests: %v", time.Since(began), r.URL.Query().Has("digest"))
			}
			write(w, heldBefore+goodbye("draining", 60_000))
		})
		defer stop()
		first := c.Replica(t.Context(), "w")
		defer first.Close()
		time.Sleep(30 * time.Second)
		second := c.Replica(t.Context(), "w")
		defer second.Close()
		time.Sleep(3 * undigestedFor)
		synctest.Wait()
		if len(refused) != 2 || refused[1]-refused[0] < undigestedFor || streams < 20 {
			t.Errorf("digests were refused after %v, and there were %d streams", refused, streams)
		}
	})
}

// TestVerifyingOnlyWhatWasAskedFor: of a watch that a server sends unasked nothing is kept, and nothing is
// read.
func TestVerifyingOnlyWhatWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := 0
		wrong := strings.Replace(heldBefore, "\"count\":1", "\"count\":1,\"digest\":\"1-00000000000000000000000000000001\"", 1)
		c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/digests/") {
				read++
				http.Error(w, "{}", http.StatusGone)
				return
			}
			stalls(wrong)(w, r)
		})
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		upserts := 0
		for e := range c.Watch(ctx, "another", Verifying()) {
			if e.Type == Upsert {
				upserts++
			}
		}
		if upserts != 1 || read != 0 {
			t.Errorf("%d upserts, and %d requests for a digest, want 1, 0", upserts, read)
		}
	})
}

// TestHostileDigests: whatever a server answers, the client shows what it had, and gives up after two
// attempts.
func TestHostileDigests(t *testing.T) {
	oneBucket := fmt.Sprintf(`{"buckets":1,"table":%q}`, base64.StdEncoding.EncodeToString(make([]byte, 12)))
	for name, answers := range map[string]map[string]string{
		"no table":                        {},
		"a table without a size":          {"": `{"buckets":0,"table":""}`},
		"a table of another size":         {"": `{"buckets":7,"table":"AAAA"}`},
		"a size that is none":             {"": `{"buckets":-1,"table":""}`},
		"an endless table":                {"": endless},
		"a table of too many buckets":     {"": fmt.Sprintf(`{"buckets":2,"table":%q}`, base64.StdEncoding.EncodeToString(make([]byte, 24)))},
		"an endless page of keys":         {"": oneBucket, "/keys": endless},
		"endless resources":               {"": oneBucket, "/keys": `{"keys":[{"key":"b","hash":"00"}]}`, "/resources": endless},
		"an endless list of keys":         {"": oneBucket, "/keys": `{"keys":[],"next_page_token":"0.1"}`},
		"the same keys again and again":   {"": oneBucket, "/keys": `{"keys":[{"key":"b","hash":"00"}],"next_page_token":"0.1"}`},
		"more keys than there are":        {"": oneBucket, "/keys": `{"keys":[{"key":"b","hash":"00"},{"key":"c","hash":"00"},{"key":"d","hash":"00"}]}`},
		"another resource":                {"": oneBucket, "/keys": `{"keys":[{"key":"b","hash":"00"}]}`, "/resources": `{"resources":[{"key":"c","revision":"5","value":2}],"read":1}`},
		"a hash that is none":             {"": oneBucket, "/keys": `{"keys":[{"key":"a","hash":"x"}]}`},
		"nothing is read":                 {"": oneBucket, "/keys": `{"keys":[{"key":"b","hash":"00"}]}`, "/resources": `{"resources":[],"read":0}`},
		"more is read than asked":         {"": oneBucket, "/keys": `{"keys":[{"key":"b","hash":"00"}]}`, "/resources": `{"resources":[],"read":9}`},
		"what is read has another digest": {"": oneBucket, "/keys": `{"keys":[{"key":"b","hash":"00"}]}`, "/resources": `{"resources":[{"key":"b","revision":"5","value":2}],"read":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				streams := 0
				c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if _, of, is := strings.Cut(r.URL.Path, "/digests/2-00000000000000000000000000000001"); is {
						if answers[of] == "" {
							http.Error(w, "{}", http.StatusNotFound)
							return
						}
						if answers[of] == endless {
							if sent := writeEndless(w); sent >= tooMuch {
								t.Errorf("%d bytes of an answer are taken", sent)
							}
						}
						_, _ = w.Write([]byte(answers[of]))
						return
					}
					streams++
					switch {
					case streams == 1:
						write(w, heldBefore)
					case r.Header.Get("Last-Event-ID") == "":
						stalls(strings.ReplaceAll(heldBefore, "\"value\":1", "\"value\":2"))(w, r)
					case r.Header.Get("Last-Event-ID") != "w@a-1":
						t.Errorf("the client comes back from %q", r.Header.Get("Last-Event-ID"))
					default:
						stalls(comesBack)(w, r)
					}
				})
				defer stop()
				replica := c.Replica(t.Context(), "w")
				defer replica.Close()
				for range 100 {
					time.Sleep(time.Second)
					r, ok := replica.Get("a")
					if !ok || replica.Len() != 1 {
						t.Fatalf("it shows %v", r)
					}
					if string(r.Value) == "2" {
						if streams != 4 {
							t.Errorf("%d streams until it begins again, want 4", streams)
						}
						return
					}
				}
				t.Errorf("after %d streams it has not begun again", streams)
			})
		})
	}
}

// TestStateThatIsGone: a client that asks a replica without the state comes back for another one, which is not a failure for some time. It
// shows what it had meanwhile, and does not come with a position that can be resumed.
func TestStateThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := slices.Repeat([]turn{stalls(comesBack)}, 2+mostGone+mostUnverified)
		turns[0] = replies(heldBefore)
		turns[len(turns)-1] = stalls(strings.ReplaceAll(heldBefore, "\"value\":1", "\"value\":2"))
		s := &script{turns: turns}
		c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/digests/") {
				http.Error(w, "{}", http.StatusGone)
				return
			}
			s.ServeHTTP(w, r)
		})
		defer stop()
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		from := s.resumeIDs()
		for len(from) < len(turns) {
			time.Sleep(time.Second)
			r, ok := replica.Get("a")
			if from = s.resumeIDs(); replica.Len() > 0 && (!ok || string(r.Value) == "2" && len(from) < 2+mostGone) {
				t.Fatalf("it shows %v", r)
			}
		}
		want := append([]string{"", "w@a-1"}, slices.Repeat([]string{"w@none-0"}, mostGone+mostUnverified-1)...)
		if want = append(want, ""); !slices.Equal(from, want) {
			t.Errorf("it comes from %q, want %q", from, want)
		}
	})
}

// TestVerify: a client that was sent something else than the server has names the keys.
func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := strings.Replace(heldBefore, "\"count\":1", "\"count\":1,\"digest\":\"1-0000000000000000000000000000000f\"", 1)
		c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/keys"):
				_, _ = w.Write([]byte(`{"keys":[{"key":"b","hash":"0f"}]}`))
			case strings.Contains(r.URL.Path, "/digests/"):
				_, _ = fmt.Fprintf(w, `{"buckets":1,"table":%q}`, base64.StdEncoding.EncodeToString(make([]byte, 12)))
			default:
				write(w, sent+"event: goodbye\ndata: {\"type\":\"goodbye\",\"reason\":\"complete\",\"retry_ms\":1}\n\n")
			}
		})
		defer stop()
		found, err := c.Verify(t.Context(), "w", View{})
		if err != nil || fmt.Sprint(found.Differing) != "[a b]" || found.Count != 1 || found.Revision != "1" {
			t.Errorf("%+v, %v", found, err)
		}
		sent = heldBefore
		if _, err := c.Verify(t.Context(), "w", View{}); !errors.Is(err, ErrNoDigest) {
			t.Errorf("a server without digests: %v", err)
		}
	})
}

// TestVerifyOfSumsWithOneLowerHalf: states whose tables are equal, since the lower halves of their sums are, differ nevertheless; and a
// server whose keys are those of what it sent, and whose digest is another one, is not taken for equal.
func TestVerifyOfSumsWithOneLowerHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := Resource{Key: "a", Value: json.RawMessage("1")}.hash()
		digest := fmt.Sprintf("1-%016x%016x", 1, held)
		keys := `{"keys":[{"key":"b","hash":"0f"}]}`
		c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/keys") && len(r.URL.Query()["bucket"]) > 0:
				_, _ = io.WriteString(w, keys)
			case strings.Contains(r.URL.Path, "/digests/"):
				table := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, 1), held)
				_, _ = fmt.Fprintf(w, `{"buckets":1,"table":%q}`, base64.StdEncoding.EncodeToString(table))
			default:
				write(w, strings.Replace(heldBefore, "\"count\":1", "\"count\":1,\"digest\":\""+digest+"\"", 1)+
					"event: goodbye\ndata: {\"type\":\"goodbye\",\"reason\":\"complete\",\"retry_ms\":1}\n\n")
			}
		})
		defer stop()
		if found, err := c.Verify(t.Context(), "w", View{}); err != nil || fmt.Sprint(found.Differing) != "[a b]" {
			t.Errorf("%+v, %v", found, err)
		}
		keys = fmt.Sprintf(`{"keys":[{"key":"a","hash":"%016x"}]}`, held)
		if found, err := c.Verify(t.Context(), "w", View{}); !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), "no key differs") {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// TestCompare: two servers that never have the same until the time is up.
func TestCompare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, stopOne := serve(t, http.HandlerFunc(stalls(heldBefore)))
		defer stopOne()
		two, stopTwo := serve(t, http.HandlerFunc(stalls(strings.ReplaceAll(heldBefore, "\"key\":\"a\"", "\"key\":\"b\""))))
		defer stopTwo()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if found, err := one.Compare(ctx, two, "w", View{}); err != nil || fmt.Sprint(found.Differing) != "[a b]" {
			t.Errorf("%+v, %v", found, err)
		}
		same, stopSame := serve(t, http.HandlerFunc(stalls(heldBefore)))
		defer stopSame()
		if found, err := one.Compare(t.Context(), same, "w", View{}); err != nil || len(found.Differing) > 0 || found.Count != 1 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}
