package client

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// state is the values of the resources of a watch by their keys, as a server has them that knows digests. Static.
type state map[string]string

// stateOf returns a state with the keys 0 to n-1.
func stateOf(n int, value string) state {
	s := state{}
	for i := range n {
		s[strconv.Itoa(i)] = value
	}
	return s
}

func (s state) resource(key string) Resource {
	return Resource{Key: key, Revision: "1", Value: json.RawMessage(s[key])}
}

func (s state) digest() (d digest) {
	for key := range s {
		d = d.add(s.resource(key).hash())
	}
	return d
}

// snapshot is a stream that begins with all of it.
func (s state) snapshot(watch, epoch string) string {
	text := fmt.Sprintf("event: reset\ndata: {\"type\":\"reset\",\"watch\":%q,\"reason\":\"initial\"}\n\n", watch)
	for key := range s {
		text += fmt.Sprintf("event: upsert\ndata: {\"type\":\"upsert\",\"watch\":%q,\"key\":%q,\"revision\":\"1\",\"value\":%s}\n\n", watch, key, s[key])
	}
	return text + s.end(watch, epoch, "")
}

// end is an end_of_snapshot.
func (s state) end(watch, epoch, more string) string {
	return fmt.Sprintf("event: end_of_snapshot\ndata: {\"type\":\"end_of_snapshot\",\"watch\":%q,\"revision\":\"1\",\"count\":%d,\"digest\":%q%s}\nid: %s@%s-1\n\n",
		watch, len(s), s.digest(), more, watch, epoch)
}

// verify is the end of a resume by digest.
func (s state) verify(watch, epoch string) string {
	return s.end(watch, epoch, `,"resumed":true,"verify":true`)
}

// answer answers a request about the state.
func (s state) answer(w http.ResponseWriter, r *http.Request) {
	d := newDifference(nil, "", View{}, s.digest().String())
	bucket := func(key string) int { return bucketOf(key, d.buckets) }
	query := r.URL.Query()
	switch _, part, _ := strings.Cut(r.URL.Path, "/digests/"+d.digest); part {
	case "":
		sums := make([]digest, d.buckets)
		for key := range s {
			sums[bucket(key)] = sums[bucket(key)].add(s.resource(key).hash())
		}
		var table []byte
		for _, sum := range sums {
			table = binary.LittleEndian.AppendUint32(table, uint32(sum.count))
			table = binary.LittleEndian.AppendUint64(table, sum.lo)
		}
		fmt.Fprintf(w, `{"buckets":%d,"table":%q}`, d.buckets, base64.StdEncoding.EncodeToString(table))
	case "/keys":
		var keys []string
		for key := range s {
			if slices.Contains(query["bucket"], strconv.Itoa(bucket(key))) {
				keys = append(keys, fmt.Sprintf(`{"key":%q,"revision":"1","hash":"%016x"}`, key, s.resource(key).hash()))
			}
		}
		fmt.Fprintf(w, `{"keys":[%s]}`, strings.Join(keys, ","))
	default:
		var found []string
		for _, key := range query["key"] {
			found = append(found, fmt.Sprintf(`{"key":%q,"revision":"1","value":%s}`, key, s[key]))
		}
		fmt.Fprintf(w, `{"resources":[%s],"read":%d}`, strings.Join(found, ","), len(found))
	}
}

const greeting = "event: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000}\n\n"

// restarted is a gateway that has one state at first, and in the second stream another one, in another order. refuse answers
// requests about the state; false: it does not.
type restarted struct {
	before, after state
	refuse        func(w http.ResponseWriter, r *http.Request, n int) bool

	mu      sync.Mutex // guards the following fields
	streams []string   // the position of each
	asked   []time.Time
}

// note keeps what a request is for, and returns how many there were of its kind.
func (s *restarted) note(r *http.Request) (n int, digests bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(r.URL.Path, "/digests/") {
		s.asked = append(s.asked, time.Now())
		return len(s.asked), true
	}
	s.streams = append(s.streams, r.Header.Get("Last-Event-ID"))
	return len(s.streams), false
}

// requests returns the positions of the streams, and when the requests about digests were made.
func (s *restarted) requests() (streams []string, asked []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.streams), slices.Clone(s.asked)
}

func (s *restarted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, digests := s.note(r)
	switch {
	case digests && s.refuse != nil && s.refuse(w, r, n):
	case digests:
		s.after.answer(w, r)
	case n == 1:
		write(w, greeting+s.before.snapshot("w", "a"))
	case r.Header.Get("Last-Event-ID") == "":
		stalls(greeting+s.after.snapshot("w", "b"))(w, r)
	default:
		stalls(greeting+s.after.verify("w", "b"))(w, r)
	}
}

// shows waits until a replica shows a state.
func shows(t *testing.T, r *Replica[Resource], s state, within time.Duration) {
	t.Helper()
	for range int(within / time.Second) {
		if r.digestShown() == s.digest().String() {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("after %v it shows %s, want %s", within, r.digestShown(), s.digest())
}

// TestServerThatCannotAnswerForNow: a server that refuses requests about a state for some time, or a network that fails, is asked
// again, not before the time that it names, and no snapshot is asked for.
func TestServerThatCannotAnswerForNow(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter, r *http.Request){
		"503": func(w http.ResponseWriter, r *http.Request) { refuses(503, "Retry-After", "2")(w, r) },
		"429": func(w http.ResponseWriter, r *http.Request) { refuses(429, "Retry-After", "2")(w, r) },
		"502 of a proxy": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "<html>", http.StatusBadGateway)
		},
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"buckets":`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &restarted{before: stateOf(100, "1"), after: stateOf(101, "1"), refuse: func(w http.ResponseWriter, r *http.Request, n int) bool {
					if n > 2 {
						return false
					}
					refuse(w, r)
					return true
				}}
				c, stop := serve(t, s.ServeHTTP)
				defer stop()
				replica := c.Replica(t.Context(), "w")
				defer replica.Close()
				shows(t, replica, s.before, 2*time.Second)
				shows(t, replica, s.after, time.Minute)
				streams, asked := s.requests()
				if want := []string{"", "w@a-1"}; !slices.Equal(streams, want) {
					t.Errorf("the streams begin at %q, want %q", streams, want)
				}
				for i := range min(2, len(asked)-1) {
					if wait := asked[i+1].Sub(asked[i]); (name == "503" || name == "429") && wait < 2*time.Second {
						t.Errorf("it asks again after %v, want the 2 s of Retry-After", wait)
					}
				}
			})
		})
	}
}

// TestServerThatCannotAnswerForLong: the client comes back, with its old position and what it showed, as often as it takes, and does not
// ask for a snapshot. Nor does it if the state is gone once there is an answer.
func TestServerThatCannotAnswerForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &restarted{before: stateOf(100, "1"), after: stateOf(101, "1"), refuse: func(w http.ResponseWriter, r *http.Request, n int) bool {
			if time.Since(began) > 10*time.Minute {
				return false
			}
			status := http.StatusServiceUnavailable
			if n%3 == 0 {
				status = http.StatusGone
			}
			refuses(status, "Retry-After", "3")(w, r)
			return true
		}}
		c, stop := serve(t, s.ServeHTTP)
		defer stop()
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		shows(t, replica, s.before, 2*time.Second)
		for time.Since(began) < 10*time.Minute {
			time.Sleep(time.Second)
			shows(t, replica, s.before, time.Second)
		}
		_, asked := s.requests()
		n := len(asked)
		if n < 20 || n > 300 {
			t.Errorf("it has asked %d times in 10 minutes", n)
		}
		shows(t, replica, s.after, 2*time.Minute)
		streams, _ := s.requests()
		if slices.Contains(streams[1:], "") {
			t.Errorf("the streams begin at %q, want no snapshot", streams)
		}
		t.Logf("%d streams, %d requests", len(streams), n)
	})
}

// TestStateOfAnotherReplica: behind a proxy that sends each request to the next of three replicas, of which one has the
// state, a client finds out what differs without another stream.
func TestStateOfAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := stateOf(300, "1"), stateOf(300, "1")
		now["7"], now["new"] = "2", "3"
		s := &restarted{before: old, after: now, refuse: func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n%3 == 0 {
				return false
			}
			refuses(http.StatusGone)(w, nil)
			return true
		}}
		c, stop := serve(t, s.ServeHTTP)
		defer stop()
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		shows(t, replica, now, 4*time.Second)
		if streams, _ := s.requests(); len(streams) != 2 {
			t.Errorf("%d streams, want 2", len(streams))
		}
	})
}

// TestRetryAfterBeyondTheTime: a client that is to come back later than verifying may take ends its stream at once, and comes back then.
func TestRetryAfterBeyondTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &restarted{before: stateOf(100, "1"), after: stateOf(101, "1"), refuse: func(w http.ResponseWriter, r *http.Request, n int) bool {
			if n > 1 {
				return false
			}
			refuses(503, "Retry-After", "100")(w, r)
			return true
		}}
		c, stop := serve(t, s.ServeHTTP)
		defer stop()
		replica := c.Replica(t.Context(), "w")
		defer replica.Close()
		shows(t, replica, s.before, 2*time.Second)
		shows(t, replica, s.after, 5*time.Minute)
		streams, asked := s.requests()
		if wait := asked[1].Sub(asked[0]); wait < 100*time.Second || len(streams) != 3 {
			t.Errorf("it asks again after %v, and the streams begin at %q", wait, streams)
		}
	})
}

// TestDifferenceUnavailable: the error says that there was no answer, and why.
func TestDifferenceUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := serve(t, http.HandlerFunc(refuses(http.StatusServiceUnavailable, "Retry-After", "4")))
		defer stop()
		began := time.Now()
		_, err := c.Difference(t.Context(), "w", View{}, stateOf(3, "1").digest().String(), func(func(Resource) bool) {}, true)
		var p *Problem
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &p) || p.RetryAfter != 4*time.Second {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < 4*time.Second || took > verifyWithin+time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestTooMuchDiffers: a client that differs by more than a quarter, and more than a thousand resources, reads none of them, and asks for a
// snapshot at once.
func TestTooMuchDiffers(t *testing.T) {
	for _, verifying := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			read := 0
			s := &restarted{before: stateOf(2000, "1"), after: stateOf(2000, "2"), refuse: func(_ http.ResponseWriter, r *http.Request, _ int) bool {
				if strings.HasSuffix(r.URL.Path, "/resources") {
					read++
				}
				return false
			}}
			c, stop := serve(t, s.ServeHTTP)
			defer stop()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if verifying {
				replica := NewReplica("w")
				for e := range c.Watch(ctx, "w", Verifying()) {
					_ = replica.Apply(e)
				}
				shows(t, replica, s.after, time.Second)
			} else {
				replica := c.Replica(ctx, "w")
				defer replica.Close()
				shows(t, replica, s.after, 30*time.Second)
			}
			streams, _ := s.requests()
			if want := []string{"", "w@a-1", ""}; !slices.Equal(streams, want) || read > 0 {
				t.Errorf("the streams begin at %q, want %q; %d requests for resources", streams, want, read)
			}
		})
	}
}

// TestVerifyingHandsOverWhole: what is read is handed over once it is all that differs, with the changes before it, and nothing of it is
// if the digest does not match, or an answer is missing.
func TestVerifyingHandsOverWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := stateOf(1, "1"), stateOf(600, `"`+strings.Repeat("x", 100)+`"`)
		read := 0
		touched := "event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"w\",\"key\":\"touched\",\"revision\":\"1\",\"value\":1}\n\n"
		var streams []string
		c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/resources"):
				if read++; read == 2 {
					keys := r.URL.Query()["key"]
					fmt.Fprintf(w, `{"resources":[{"key":%q,"revision":"1","value":0}],"read":1}`, keys[0])
					return
				}
				after.answer(w, r)
			case strings.Contains(r.URL.Path, "/digests/"):
				after.answer(w, r)
			default:
				streams = append(streams, r.Header.Get("Last-Event-ID"))
				if len(streams) == 1 {
					write(w, greeting+before.snapshot("w", "a"))
				} else {
					stalls(greeting+touched+after.verify("w", "b"))(w, r)
				}
			}
		})
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		handed, replica := 0, NewReplica("w")
		for e, err := range c.Watch(ctx, "w", Verifying()) {
			if err != nil {
				break
			}
			if e.State == Offline && handed > 3 {
				t.Errorf("%d changes are handed over before the stream fails", handed)
			}
			if e.Type == Upsert || e.Type == Delete {
				handed++
			}
			if _ = replica.Apply(e); replica.digestShown() == after.digest().String() {
				break
			}
		}
		shows(t, replica, after, time.Second)
		if want := []string{"", "w@a-1", "w@a-1"}; !slices.Equal(streams, want) {
			t.Errorf("the streams begin at %q, want %q", streams, want)
		}
		if want := 1 + 600 + 2; handed != want { // touched, and its delete
			t.Errorf("%d changes were handed over, want %d", handed, want)
		}
	})
}

// TestOneWatchThatCannotBeVerified: of several watches, only the one that cannot be verified begins again with a snapshot.
func TestOneWatchThatCannotBeVerified(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		synctest.Test(t, func(t *testing.T) {
			w, v := stateOf(3, "1"), stateOf(4, "1")
			other := stateOf(5, "1")
			both := func(text string) string {
				return strings.NewReplacer("id: v@a-1", "id: w@a-1,v@a-1", "id: v@b-1", "id: w@b-1,v@b-1").Replace(text)
			}
			var streams []string
			c, stop := serve(t, func(out http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/digests/") {
					http.Error(out, "{}", status)
					return
				}
				from := r.Header.Get("Last-Event-ID")
				streams = append(streams, from)
				switch {
				case len(streams) == 1:
					write(out, greeting+w.snapshot("w", "a")+both(v.snapshot("v", "a")))
				case placeOf(from, "w") != "":
					stalls(greeting+both(v.end("v", "a", `,"resumed":true`))+other.verify("w", "b"))(out, r)
				default:
					stalls(greeting+both(v.end("v", "a", `,"resumed":true`))+other.snapshot("w", "b"))(out, r)
				}
			})
			defer stop()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			replicas := map[string]*Replica[Resource]{"w": NewReplica("w"), "v": NewReplica("v")}
			for e := range c.Watch(ctx, "w", And("v"), Verifying()) {
				for _, r := range replicas {
					_ = r.Apply(e)
				}
				if replicas["w"].digestShown() == other.digest().String() {
					break
				}
			}
			shows(t, replicas["v"], v, time.Second)
			for i, from := range streams[1:] {
				last := i == len(streams)-2
				if placeOf(from, "v") != "v@a-1" || (placeOf(from, "w") == "") != last {
					t.Errorf("with %d, stream %d begins at %q", status, i+2, from)
				}
			}
			want := 2 + mostUnverified
			if status == http.StatusGone {
				want += mostGone
			}
			if len(streams) != want {
				t.Errorf("with %d, %d streams, want %d", status, len(streams), want)
			}
		})
	}
}

// TestRowsOfOtherWatchesAreHandedOver: what has come of one watch, and was not handed over since another one could not be verified,
// is not taken for held.
func TestRowsOfOtherWatchesAreHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, more, v, other := stateOf(1, "1"), stateOf(2, "1"), stateOf(3, "1"), stateOf(4, "1")
		both := func(text, ids string) string {
			return strings.NewReplacer("id: v@a-1", ids, "id: v@b-1", ids, "id: w@a-1\n", "\n", "id: w@b-1\n", "\n").Replace(text)
		}
		came := "event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"w\",\"key\":\"1\",\"revision\":\"1\",\"value\":1}\n\n"
		streams := 0
		c, stop := serve(t, func(out http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/v/digests/") {
				http.Error(out, "{}", http.StatusNotFound)
				return
			}
			if strings.Contains(r.URL.Path, "/digests/") {
				more.answer(out, r)
				return
			}
			switch streams++; streams {
			case 1:
				write(out, greeting+both(w.snapshot("w", "a")+v.snapshot("v", "a"), "id: w@a-1,v@a-1"))
			case 2:
				write(out, greeting+both(came+other.verify("v", "b"), "id: w@a-2,v@b-1"))
			default: // the position of w is not known any more
				stalls(greeting+both(more.verify("w", "b")+v.end("v", "a", `,"resumed":true`), "id: w@b-1,v@a-1"))(out, r)
			}
		})
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		replica := NewReplica("w")
		for e := range c.Watch(ctx, "w", And("v"), Verifying()) {
			if _ = replica.Apply(e); replica.digestShown() == more.digest().String() {
				break
			}
		}
		shows(t, replica, more, time.Second)
	})
}

// TestCountsOfBuckets: a bucket with another number of resources differs, although the sums of their hashes are the same.
func TestCountsOfBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := Resource{Key: "a", Value: json.RawMessage("1")}
		c, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			table := binary.LittleEndian.AppendUint64([]byte{2, 0, 0, 0}, held.hash())
			fmt.Fprintf(w, `{"buckets":1,"table":%q}`, base64.StdEncoding.EncodeToString(table))
		})
		defer stop()
		replica := NewReplica("w")
		if err := replica.Apply(Event{Type: Upsert, Watch: "w", Resource: held}); err != nil {
			t.Fatal(err)
		}
		d := newDifference(c, "w", View{}, fmt.Sprintf("2-%032x", held.hash()))
		differing, err := replica.differing(t.Context(), d)
		if err != nil || !differing[0] {
			t.Errorf("%v, %v: want bucket 0", differing, err)
		}
	})
}
