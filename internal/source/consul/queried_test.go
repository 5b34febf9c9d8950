package consul

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// expectEnd waits until a Watch call ends, and requires a text in its error.
func (r *running) expectEnd(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	select {
	case <-r.ended:
	default:
		t.Fatalf("it goes on, want an end with %q: %s", want, r.take())
	}
	if r.err == nil || !strings.Contains(r.err.Error(), want) {
		t.Fatalf("error %v, want %q in it", r.err, want)
	}
}

// TestKeysOfTheStore: each key has its own revision, and the whole that of the answer.
func TestKeysOfTheStore(t *testing.T) {
	f := newFakeHTTP()
	f.said = keys(9, "a@5=1 b@9=x")
	httpBubble(t, f, Config{}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@5 +b@9 =9")
		f.say(keys(12, "a@5=1 c@12=x"))
		time.Sleep(time.Second)
		r.want(t, "a change", "-b@12 +c@12 =12")
		f.say(keys(14, "a@5=1 c@12=x"))
		time.Sleep(time.Second)
		r.want(t, "what was created and deleted at once", "=14")
		f.say(keys(15, ""))
		time.Sleep(time.Second)
		r.want(t, "the last keys", "-a@15 -c@15 =15")
		time.Sleep(5 * time.Minute)
		r.want(t, "nothing", "")
	})
	for _, query := range f.asked() {
		if !strings.HasPrefix(query, "/v1/kv/app/?") || !strings.Contains(query, "recurse") {
			t.Errorf("asked %s", query)
		}
	}
}

// TestRevisionOfASnapshotOfKeys: the list has only the index of what is in it, and the index falls
// when Consul forgets what was deleted. The snapshot is as new as the store.
func TestRevisionOfASnapshotOfKeys(t *testing.T) {
	f := newFakeHTTP()
	f.said, f.floor = keys(9, "a@9=1"), 20
	httpBubble(t, f, Config{}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@9 =20")
		f.say(keys(21, "a@9=1 b@21=1"))
		time.Sleep(time.Second)
		r.want(t, "a change", "+b@21 =21")
		f.mu.Lock()
		f.floor = 25
		f.mu.Unlock()
		f.say(keys(9, "a@9=1")) // b was deleted at 25, and Consul has forgotten it already
		time.Sleep(time.Second)
		r.want(t, "an index that went back", "-b@25 =25")
	})
}

// TestAnotherDatacenterThanTheServers: its store has an index of its own, and it has another leader.
func TestAnotherDatacenterThanTheServers(t *testing.T) {
	f := newFakeHTTP()
	f.said, f.floor, f.datacenter, f.elsewhere = keys(9, "a@9=1"), 20, "dc2", 1000
	httpBubble(t, f, Config{Resources: Resources{Datacenter: "dc2"}}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@9 =20")
		f.say(keys(21, "a@9=1 b@21=1"))
		time.Sleep(time.Second)
		r.want(t, "a change", "+b@21 =21")
		time.Sleep(time.Minute)
		r.want(t, "no leader of the server's datacenter", "")
		f.mu.Lock()
		f.leader, f.leaderElsewhere = "", "10.0.0.1:8300"
		f.mu.Unlock()
		time.Sleep(30 * time.Second)
		r.want(t, "no leader", "stale "+noLeader)
	})
}

// TestIndexThatGoesBack: what is newest may be gone. The order goes on, unless what is there
// contradicts it.
func TestIndexThatGoesBack(t *testing.T) {
	f := newFakeHTTP()
	f.said = keys(9, "a@5#1=1 b@9#2=x")
	httpBubble(t, f, Config{}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@5 +b@9 =9")
		f.say(keys(5, "a@5#1=1 b@9#2=x"))
		time.Sleep(time.Second)
		r.want(t, "the same", "")
		if got := f.asked(); !strings.Contains(got[len(got)-2], "consistent") || strings.Contains(got[len(got)-2], "index") {
			t.Errorf("asked %q, want a consistent query without an index after the index went back", got)
		}
		f.say(keys(4, "a@4#1=0"))
		time.Sleep(time.Second)
		r.want(t, "a restored snapshot", "reset +a@4 =4")
		f.say(keys(6, "a@4#1=0 b@6#6=0"))
		time.Sleep(time.Second)
		r.want(t, "a change after it", "+b@6 =6")
		if r.epoch[0] == r.epoch[1] {
			t.Errorf("epochs %q: want two", r.epoch)
		}
	})
}

// TestReconnectToTheSame: the next connection goes on in the same order.
func TestReconnectToTheSame(t *testing.T) {
	f := newFakeHTTP()
	f.said = keys(9, "a@5=1 b@9=x")
	httpBubble(t, f, Config{}, func(t *testing.T, _ *Queried, watch func() *running) {
		first := watch()
		first.want(t, "the snapshot", "reset +a@5 +b@9 =9")
		f.say(page{index: 9, status: 500, body: "No cluster leader"})
		first.expectEnd(t, `consul consul.test:8500, kv "app/": 500 Internal Server Error: No cluster leader`)
		f.say(keys(11, "a@5=1 c@11=x"))
		second := watch()
		second.want(t, "the snapshot after it", "reset +a@5 +c@11 =11")
		if first.epoch[0] != second.epoch[0] {
			t.Errorf("epochs %q and %q", first.epoch, second.epoch)
		}
		f.say(page{index: 11, status: 500, body: "No cluster leader"})
		second.expectEnd(t, "No cluster leader")
		f.mu.Lock()
		f.cluster = "22222222.consul"
		f.mu.Unlock()
		f.say(keys(3, "z@3=1"))
		third := watch()
		third.want(t, "the snapshot of another cluster", "reset +z@3 =3")
		if third.epoch[0] == first.epoch[0] {
			t.Errorf("the epoch stayed %q", first.epoch)
		}
	})
}

// TestLostRights: an answer that lacks what the token could read does not delete it.
func TestLostRights(t *testing.T) {
	f := newFakeHTTP()
	f.said = keys(9, "a@5=1 b@9=x")
	httpBubble(t, f, Config{TokenFile: tokenFile(t, "first-token")}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@5 +b@9 =9")
		f.say(keys(9, "").with(filteredHeader, "true"))
		time.Sleep(2 * DefaultRelist)
		r.expectEnd(t, `nothing is left of what it may read; want a token whose policy has key_prefix "app/" { policy = "read" }`)
		if got := r.take(); got != "" {
			t.Errorf("the sink got %s", got)
		}
		f.say(keys(9, "a@5=1").with(filteredHeader, "true"))
		again := watch()
		again.expectEnd(t, `the token may not read all of it any more, and 1 that it could read are missing, such as "b"`)
		f.say(keys(9, "a@5=1 b@9=x"))
		back := watch()
		back.want(t, "the rights are back", "reset +a@5 +b@9 =9")
	})
}

// TestLimitedToken: a token that never could read all of it sees deletes of what it can.
func TestLimitedToken(t *testing.T) {
	f := newFakeHTTP()
	f.said = keys(9, "a@5=1 b@9=x").with(filteredHeader, "true")
	httpBubble(t, f, Config{}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@5 +b@9 =9")
		f.say(keys(10, "a@5=1").with(filteredHeader, "true"))
		time.Sleep(time.Second)
		r.want(t, "a delete", "-b@10 =10")
	})
	f = newFakeHTTP()
	f.said = keys(9, "").with(policyHeader, "deny") // without a token, Consul does not say that it filters
	httpBubble(t, f, Config{}, func(t *testing.T, _ *Queried, watch func() *running) {
		watch().expectEnd(t, "the token may read nothing of it, or nothing is left of what it may read; want token_file with a token whose policy has")
	})
}

// TestRotatedToken: another token in the file is used at once, for the whole list.
func TestRotatedToken(t *testing.T) {
	f := newFakeHTTP()
	f.said = keys(9, "a@5=1")
	file := tokenFile(t, "first-token")
	httpBubble(t, f, Config{TokenFile: file}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@5 =9")
		if err := os.WriteFile(file, []byte("second-token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * DefaultProbe)
		r.want(t, "nothing", "")
		f.mu.Lock()
		defer f.mu.Unlock()
		n := len(f.tokens)
		if n < 4 || f.tokens[n-1] != "second-token" || f.tokens[n-2] != "second-token" || f.tokens[n-3] != "first-token" ||
			strings.Contains(f.requests[n-2], "index=") || !strings.Contains(f.requests[n-1], "index=9") {
			t.Errorf("asked %q with %q", f.requests, f.tokens)
		}
	})
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFreshness: a server without a leader, and one that has not heard of it, says so.
func TestFreshness(t *testing.T) {
	f := newFakeHTTP()
	f.said = keys(9, "a@5=1")
	httpBubble(t, f, Config{Consistency: ConsistencyStale}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@5 =9")
		f.say(keys(10, "a@10=1").with(contactHeader, "60000"))
		time.Sleep(100 * time.Millisecond)
		r.want(t, "old contact", "stale the server that answers has not heard of the leader for 1m0s +a@10 =10")
		f.say(keys(11, "a@11=1"))
		time.Sleep(100 * time.Millisecond)
		r.want(t, "contact", "+a@11 =11 in_sync")
		f.say(keys(12, "a@12=1").with(leaderHeader, "false"))
		time.Sleep(100 * time.Millisecond)
		r.want(t, "an answer without a leader", "stale "+noLeader+" +a@12 =12")
		streaming := keys(13, "a@13=1").with(leaderHeader, "false")
		streaming.header[backendHeader] = "streaming"
		f.say(streaming)
		time.Sleep(100 * time.Millisecond)
		r.want(t, "an agent that follows the servers", "+a@13 =13 in_sync")
		f.mu.Lock()
		f.leader = ""
		f.mu.Unlock()
		time.Sleep(DefaultProbe)
		r.want(t, "no leader", "stale "+noLeader)
		f.mu.Lock()
		f.leader = "10.0.0.2:8300"
		f.mu.Unlock()
		time.Sleep(time.Second)
		r.want(t, "a leader", "in_sync")
	})
}

// TestSilentServer: a server that does not answer is given up within two intervals.
func TestSilentServer(t *testing.T) {
	f := newFakeHTTP()
	f.said = keys(9, "a@5=1")
	httpBubble(t, f, Config{}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +a@5 =9")
		f.mu.Lock()
		f.silent = true
		f.mu.Unlock()
		time.Sleep(2 * DefaultProbe)
		r.expectEnd(t, "no answer within 5s")
		if !errors.Is(r.err, stream.ErrStalled) {
			t.Errorf("%v is not %v", r.err, stream.ErrStalled)
		}
	})
}

// TestTooManyRequests: the next connection waits as long as the server asks for.
func TestTooManyRequests(t *testing.T) {
	f := newFakeHTTP()
	f.said = page{status: http.StatusTooManyRequests, body: "rate limit exceeded"}.with("Retry-After", "7")
	httpBubble(t, f, Config{}, func(t *testing.T, _ *Queried, watch func() *running) {
		watch().expectEnd(t, "429 Too Many Requests: rate limit exceeded")
		f.say(keys(9, "a@5=1"))
		r := watch()
		time.Sleep(7*time.Second - 1)
		r.want(t, "before that time", "")
		time.Sleep(time.Second + 1)
		r.want(t, "after it", "reset +a@5 =9")
	})
}

const webPage = `[{"Node":{"Node":"n1","Address":"10.0.0.1"},"Service":{"ID":"web-1","Service":"web","Port":80,"Tags":["v1"],"Meta":{"team":"a"}},
	"Checks":[{"CheckID":"web","Name":"HTTP","Status":"%s","Output":"200 OK","ServiceID":"web-1"},{"CheckID":"serfHealth","Name":"Serf","Status":"passing"}]}]`

// TestHealth: a change of content gets the index of the answer that shows it.
func TestHealth(t *testing.T) {
	web := func(index uint64, status string) page {
		return page{index: index, body: strings.Replace(webPage, "%s", status, 1)}
	}
	f := newFakeHTTP()
	f.said = web(20, "passing")
	httpBubble(t, f, Config{Resources: Resources{Collection: Health, Service: "web"}}, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +web/n1/web-1@20 =20")
		f.say(web(25, "passing"))
		time.Sleep(time.Second)
		r.want(t, "the same content", "=25")
		f.say(web(30, "critical"))
		time.Sleep(time.Second)
		r.want(t, "another state", "+web/n1/web-1@30 =30")
		f.say(page{index: 30, status: 500, body: "rpc error: leadership lost"})
		r.expectEnd(t, "leadership lost")
		f.say(web(12, "critical"))
		again := watch()
		again.want(t, "the same content at an older index", "reset +web/n1/web-1@30 =30")
		f.say(page{index: 35, body: "[]"})
		time.Sleep(time.Second)
		again.want(t, "no instance", "-web/n1/web-1@35 =35")
		f.say(web(33, "passing"))
		time.Sleep(time.Second)
		again.want(t, "another content at an older index", "reset +web/n1/web-1@33 =33")
		if again.epoch[0] == again.epoch[1] || again.epoch[0] != r.epoch[0] {
			t.Errorf("epochs %q after %q", again.epoch, r.epoch)
		}
	})
}

// TestContinuedOrder: with the resources of a process before, equal content keeps its revision.
func TestContinuedOrder(t *testing.T) {
	f := newFakeHTTP()
	body := strings.Replace(webPage, "%s", "passing", 1)
	f.said = page{index: 40, body: body}
	c := Config{Resources: Resources{Collection: Health, Service: "web"}}
	var epoch string
	var value []byte
	httpBubble(t, f, c, func(t *testing.T, _ *Queried, watch func() *running) {
		r := watch()
		r.want(t, "the snapshot", "reset +web/n1/web-1@40 =40")
		epoch, value = r.epoch[0], r.value
	})
	f.said = page{index: 50, body: body}
	for name, want := range map[string]string{
		stream.UnnumberedName(epoch): "reset +web/n1/web-1@30 =50",
		"_other":                     "reset +web/n1/web-1@50 =50",
	} {
		httpBubble(t, f, c, func(t *testing.T, s *Queried, watch func() *running) {
			counted{s}.Continue(stream.Resume{Epoch: name, Revision: 35}, func(yield func(stream.Resource) bool) {
				yield(stream.Resource{Key: "web/n1/web-1", Revision: 30, Value: value})
			})
			r := watch()
			r.want(t, "after "+name, want)
		})
	}
}

// TestErrorsNameTheRight: where Consul refuses, the error says what would be right.
func TestErrorsNameTheRight(t *testing.T) {
	for _, c := range []struct {
		page   page
		config Config
		want   string
	}{
		{page{status: 403, body: "Permission denied: token lacks permission 'key:read' on \"app/\""}, Config{TokenFile: tokenFile(t, "some-token")}, `want a token whose policy has key_prefix "app/" { policy = "read" }`},
		{page{status: 403, body: "Permission denied: token lacks permission 'key:list' on \"app/\""}, Config{TokenFile: tokenFile(t, "some-token")}, `want a token whose policy has key_prefix "app/" { policy = "list" }`},
		{page{status: 403, body: "ACL not found"}, Config{}, "want token_file with a token whose policy has"},
		{page{status: 403, body: "ACL not found: some-token"}, Config{TokenFile: tokenFile(t, "some-token")}, "ACL not found: [hidden]; want a token that exists in"},
		{page{status: 400, body: `Invalid query parameter: "ns" - Namespaces are a Consul Enterprise feature`}, Config{}, "want no tenancy: this Consul is not Enterprise"},
		{page{status: 500, body: "No path to datacenter"}, Config{}, "want a datacenter that this one is joined with"},
		{page{status: 400, body: "Client sent an HTTP request to an HTTPS server."}, Config{}, "want tls where the port speaks it"},
		{page{status: 301, header: map[string]string{"Location": "http://elsewhere.test/"}}, Config{}, "the answer is a redirect to http://elsewhere.test/"},
		{page{status: 200, body: "[]"}, Config{}, "the answer has no X-Consul-Index"},
		{page{status: 500, body: strings.Repeat("long ", 1000)}, Config{}, "500 Internal Server Error: long long"},
	} {
		f := newFakeHTTP()
		f.said = c.page
		httpBubble(t, f, c.config, func(t *testing.T, _ *Queried, watch func() *running) {
			r := watch()
			r.expectEnd(t, c.want)
			if len(r.err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(r.err.Error()))
			}
		})
	}
}
