package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
)

// world is a cluster with rights that change. It is what a [server] answers with.
type world struct {
	*server
	t      *testing.T
	rights *Rights
	stop   func()

	mu sync.Mutex
	// Guarded by mu.
	may        map[string]bool // "user verb namespace"
	namespaces []string
	down       error
	takes      time.Duration // of each answer
	inside     int
	most       int         // that were inside at a time
	times      []time.Time // of questions
	changes    int         // calls of changed
}

const everywhere = "" // all namespaces

func newWorld(t *testing.T, c RightsConfig, namespaces ...string) *world {
	w := &world{server: &server{}, t: t, may: map[string]bool{}, namespaces: namespaces}
	w.server.right, w.server.names = w.review, w.list
	c.Server, c.Log, c.UserOf = w, slog.New(slog.DiscardHandler), UserOf("prod", map[string]Prefixes{"https://idp.example.com": {"oidc:", "oidc:"}})
	w.rights = NewRights(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.rights.Run(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.changes++
		})
	}()
	w.stop = func() { cancel(); <-done }
	return w
}

func (w *world) review(ctx context.Context, u User, a Attributes) (bool, error) {
	w.mu.Lock()
	w.inside++
	w.most = max(w.most, w.inside)
	w.times = append(w.times, time.Now())
	takes := w.takes
	w.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside--
	if w.down != nil {
		return false, w.down
	}
	if a.Resource != "pods" {
		return false, fmt.Errorf("asked about %+v", a)
	}
	return w.may[u.Name+" "+a.Verb+" "+a.Namespace], ctx.Err()
}

func (w *world) list() ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.namespaces), w.down
}

// let gives and takes rights: to list and to watch.
func (w *world) let(user string, may bool, namespaces ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range namespaces {
		w.may[user+" list "+name], w.may[user+" watch "+name] = may, may
	}
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// asked returns how many questions there were since the last call.
func (w *world) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.times)
	w.times = nil
	return n
}

func user(name string) *access.Principal {
	return &access.Principal{Mechanism: access.Kubernetes, Issuer: "prod", Name: name, Claims: map[string]any{"uid": "u-" + name}}
}

var pods = Resource{Name: "pods", LabelsAt: "metadata.labels"}

// sees returns what a user may read: "all", names with spaces between, "" for nothing, "?" if that is
// not known.
func (w *world) sees(name string) string { return w.of(user(name)) }

func (w *world) of(who *access.Principal) string {
	e, known := w.rights.Of(who, pods)
	switch {
	case !known:
		return "?"
	case e.All:
		return "all"
	case e.Definition == nil:
		return ""
	}
	return strings.Join(e.Definition.Params().Grants[0].Namespaces, " ")
}

func (w *world) await(name string) string {
	w.t.Helper()
	if err := w.rights.Await(w.t.Context(), user(name), pods); err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	return w.sees(name)
}

// during checks what a user sees every second for some time, as one who has a stream open does.
func (w *world) during(d time.Duration, check func(after time.Duration)) {
	w.t.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(time.Second) {
		check(time.Since(began))
	}
}

func TestRightsByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a", "b", "c", "d")
		defer w.stop()
		w.let("root", true, everywhere)
		w.let("ann", true, "b", "d", "gone")
		w.set(func() { w.may["ann list a"], w.may["ann watch c"], w.may["half list "] = true, true, true })
		for name, want := range map[string]string{"root": "all", "ann": "b d", "half": "", "nobody": ""} {
			if got := w.await(name); got != want {
				t.Errorf("%s sees %q, want %q", name, got, want)
			}
		}
		one := Resource{Name: "pods", Namespace: "b"}
		for name, want := range map[string]bool{"ann": true, "root": false, "nobody": false} {
			if err := w.rights.Await(t.Context(), user(name), one); err != nil {
				t.Fatal(err)
			}
			if e, known := w.rights.Of(user(name), one); e.All != want || e.Any() != want || !known {
				t.Errorf("%s in the namespace of a watch: %+v, %v", name, e, known)
			}
		}
	})
}

// TestUsersWithTheSameSetShareADefinition, and so a view.
func TestUsersWithTheSameSetShareADefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a", "b", "c")
		defer w.stop()
		ids := map[string]bool{}
		for i := range 10 {
			name := fmt.Sprint("u", i)
			w.let(name, true, "c", "a")
			w.await(name)
			e, _ := w.rights.Of(user(name), pods)
			ids[e.Definition.ID()] = true
		}
		if len(ids) != 1 {
			t.Errorf("%d definitions", len(ids))
		}
	})
}

// TestRightsChange: a loss and a gain are seen within the time to refresh.
func TestRightsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a", "b", "c")
		defer w.stop()
		w.let("ann", true, "a", "b")
		w.let("root", true, everywhere)
		w.await("ann")
		w.await("root")
		w.during(time.Minute, func(time.Duration) {
			if w.sees("ann") != "a b" || w.sees("root") != "all" {
				t.Fatalf("ann sees %q, root %q", w.sees("ann"), w.sees("root"))
			}
		})
		w.let("ann", false, "a")
		w.let("ann", true, "c")
		w.let("root", false, everywhere)
		w.let("root", true, "b")
		before := w.changes
		w.during(2*DefaultRefresh, func(after time.Duration) {
			if got := w.sees("ann"); after > DefaultRefresh && got != "b c" || strings.Contains(got, "?") {
				t.Fatalf("after %v, ann sees %q", after, got)
			}
			if got := w.sees("root"); after > DefaultRefresh && got != "b" || got == "?" || got == "" {
				t.Fatalf("after %v, root sees %q", after, got)
			}
		})
		if w.changes == before {
			t.Error("nobody is told")
		}
	})
}

// TestNewNamespaces concern those only who may read them.
func TestNewNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a", "b")
		defer w.stop()
		w.let("ann", true, "a", "new-7")
		w.let("bob", true, "b")
		w.let("root", true, everywhere)
		for _, name := range []string{"ann", "bob", "root"} {
			w.await(name)
		}
		bob, _ := w.rights.Of(user("bob"), pods)
		for i := range 20 {
			w.set(func() { w.namespaces = append(w.namespaces, fmt.Sprint("new-", i)) })
		}
		w.during(2*DefaultRefresh, func(after time.Duration) {
			if got := w.sees("ann"); after > DefaultRefresh && got != "a new-7" {
				t.Fatalf("after %v, ann sees %q", after, got)
			}
			if now, _ := w.rights.Of(user("bob"), pods); now.Definition != bob.Definition || w.sees("root") != "all" {
				t.Fatalf("bob sees %q, root %q", w.sees("bob"), w.sees("root"))
			}
		})
		w.set(func() { w.namespaces = []string{"b"} })
		w.during(2*DefaultRefresh, func(after time.Duration) {
			if got := w.sees("ann"); after > DefaultRefresh && got != "" {
				t.Fatalf("after %v, ann sees %q", after, got)
			}
		})
	})
}

// TestRightsOfASilentServer: what was granted holds for a while, and then it is not known. Nothing is
// ever added.
func TestRightsOfASilentServer(t *testing.T) {
	for name, fail := range map[string]func(w *world){
		"500":   func(w *world) { w.down = errors.New("500") },
		"429":   func(w *world) { w.down = busy{errors.New("429")} },
		"hangs": func(w *world) { w.takes, w.down = 5*time.Second, errors.New("no answer") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, RightsConfig{}, "a", "b", "c")
				defer w.stop()
				w.let("ann", true, "a", "b")
				w.let("root", true, everywhere)
				w.await("ann")
				w.await("root")
				w.set(func() { fail(w) })
				w.let("ann", false, "a")
				w.let("ann", true, "c")
				w.let("root", false, everywhere)
				w.asked()
				w.during(10*time.Minute, func(after time.Duration) {
					ann, root := w.sees("ann"), w.sees("root")
					want := "a b all"
					if after > DefaultHold+2*time.Second {
						want = "? ?"
					} else if after > DefaultHold-DefaultRefresh {
						return // its last answer was before
					}
					if got := ann + " " + root; got != want {
						t.Fatalf("after %v: %s, want %s", after, got, want)
					}
				})
				if n := w.asked(); n > 10*60*2 {
					t.Errorf("%d questions to a server that does not answer", n)
				}
				w.set(func() { w.takes, w.down = 0, nil })
				w.during(3*time.Minute, func(after time.Duration) {
					// It is never nothing, or a part of what was confirmed: clients would take it for all.
					if got := w.sees("ann"); got != "?" && got != "b" && got != "b c" || after > 2*DefaultRefresh && got != "b c" {
						t.Fatalf("%v after it answers: %q", after, got)
					}
				})
				if got := w.sees("root"); got != "" {
					t.Errorf("root sees %q", got)
				}
			})
		})
	}
}

// TestQuestionsAreBounded: many users of many namespaces have a bounded number of questions asked per
// second and at a time, and what they have is confirmed in time all the same.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 200 {
			names = append(names, fmt.Sprint("n", i))
		}
		w := newWorld(t, RightsConfig{}, names...)
		defer w.stop()
		w.set(func() { w.takes = 10 * time.Millisecond })
		w.let("ann", true, names[0])
		w.await("ann")
		for i := range 100 { // their questions take longer than the time to refresh
			name := fmt.Sprint("u", i)
			w.let(name, true, names[i])
			w.sees(name)
		}
		w.let("ann", false, names[0])
		w.during(5*time.Minute, func(after time.Duration) {
			for i := range 100 {
				w.sees(fmt.Sprint("u", i))
			}
			if got := w.sees("ann"); got != "" && after > DefaultRefresh {
				t.Fatalf("after %v, ann sees %q", after, got)
			}
		})
		for i := range 100 {
			if got := w.sees(fmt.Sprint("u", i)); got != names[i] {
				t.Errorf("%d sees %q", i, got)
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.most > accessAtOnce {
			t.Errorf("%d questions at a time", w.most)
		}
		for i := range w.times {
			const window = 10 // s
			if j := i + (window+1)*DefaultReviewsPerSecond; j < len(w.times) && w.times[j].Sub(w.times[i]) < window*time.Second {
				t.Fatalf("more than %d questions within %v", (window+1)*DefaultReviewsPerSecond, w.times[j].Sub(w.times[i]))
			}
		}
	})
}

// TestRightsThatComeAndGo do not make streams begin again each time.
func TestRightsThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a", "b")
		defer w.stop()
		w.let("ann", true, "a")
		last, switches := w.await("ann"), 0
		w.during(10*time.Minute, func(after time.Duration) {
			w.let("ann", int(after.Seconds())%2 == 0, "b")
			w.set(func() {
				w.namespaces = []string{"a", "b"}
				if int(after.Seconds())%3 == 0 {
					w.namespaces = []string{"a"}
				}
			})
			if now := w.sees("ann"); now != last {
				last, switches = now, switches+1
			}
		})
		if most := 2 * 2 * int(10*time.Minute/DefaultRefresh); switches > most {
			t.Errorf("%d switches in 10 minutes, want %d at most", switches, most)
		}
	})
}

// TestRightsThatGrow: whoever gives somebody one namespace after the other does not make their streams begin
// again with each.
func TestRightsThatGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 300 {
			names = append(names, fmt.Sprint("n", i))
		}
		w := newWorld(t, RightsConfig{}, names...)
		defer w.stop()
		last, switches := w.await("ann"), 0
		w.during(300*time.Second, func(after time.Duration) {
			w.let("ann", true, names[int(after.Seconds())])
			if now := w.sees("ann"); now != last {
				last, switches = now, switches+1
			}
		})
		time.Sleep(2 * DefaultRefresh)
		if got := strings.Count(w.sees("ann"), "n"); got != 300 {
			t.Errorf("ann sees %d namespaces in the end", got)
		}
		if most := 2*int(300*time.Second/DefaultRefresh) + 2; switches > most {
			t.Errorf("%d switches in 5 minutes, want %d at most", switches, most)
		}
	})
}

// TestWhoAUserIs: users are told apart by everything that the cluster knows of them.
func TestWhoAUserIs(t *testing.T) {
	var seen []User
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a")
		defer w.stop()
		w.server.right = func(_ context.Context, u User, _ Attributes) (bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			seen = append(seen, u)
			return u.UID == "u-1" && slices.Contains(u.Groups, "staff") && u.Extra["scopes"] != nil, nil
		}
		make := func(uid, group, extra string) *access.Principal {
			return &access.Principal{Mechanism: access.Kubernetes, Issuer: "prod", Name: "ann", Groups: []string{group}, Claims: map[string]any{"uid": uid, "extra": map[string]any{extra: []any{"x"}}}}
		}
		for _, c := range []struct {
			who  *access.Principal
			want string
		}{
			{make("u-1", "staff", "scopes"), "all"}, {make("u-2", "staff", "scopes"), ""}, {make("u-1", "other", "scopes"), ""}, {make("u-1", "staff", "other"), ""},
			{&access.Principal{Mechanism: access.Kubernetes, Issuer: "test", Name: "ann"}, ""},
			{&access.Principal{Mechanism: access.Token, Name: "ann"}, ""}, {access.Nobody(), ""},
		} {
			if err := w.rights.Await(t.Context(), c.who, pods); err != nil {
				t.Fatal(err)
			}
			if got := w.of(c.who); got != c.want {
				t.Errorf("%+v sees %q, want %q", c.who, got, c.want)
			}
		}
	})
	for _, u := range seen {
		if u.Name != "ann" || u.UID == "" {
			t.Errorf("asked about %+v", u)
		}
	}
}

// TestUsersOfAProvider: a provider cannot name anybody whom Kubernetes names itself.
func TestUsersOfAProvider(t *testing.T) {
	of := func(prefixes Prefixes, issuer, name string, groups ...string) string {
		u, ok := UserOf("prod", map[string]Prefixes{"https://a": prefixes})(&access.Principal{Mechanism: access.JWT, Issuer: issuer, Name: name, Groups: groups, Claims: map[string]any{"uid": "0", "extra": map[string]any{"a": []any{"b"}}}})
		if !ok {
			return "unknown"
		}
		return fmt.Sprintf("%s %s %v %v", u.Name, u.UID, u.Groups, u.Extra)
	}
	none := Prefixes{}
	for _, c := range []struct{ got, want string }{
		{of(none, "https://a", "ann", "staff"), "ann  [staff system:authenticated] map[]"},
		{of(Prefixes{"oidc:", "g:"}, "https://a", "ann", "staff"), "oidc:ann  [g:staff system:authenticated] map[]"},
		{of(none, "https://b", "ann"), "unknown"},
		{of(none, "https://a", "system:admin"), "unknown"},
		{of(none, "https://a", "system:serviceaccount:kube-system:x"), "unknown"},
		{of(Prefixes{"sys", ""}, "https://a", "tem:admin"), "unknown"},
		{of(Prefixes{"oidc:", ""}, "https://a", "system:admin"), "oidc:system:admin  [system:authenticated] map[]"},
		{of(none, "https://a", "ann", "system:masters", "staff"), "ann  [staff system:authenticated] map[]"},
		{of(none, "https://a", "ann", slices.Repeat([]string{"g"}, maxGroups)...), "unknown"},
		{of(none, "https://a", strings.Repeat("x", maxUserBytes)), "unknown"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// TestTooManyUsers: others are refused, and those who do not come any more make room.
func TestTooManyUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{})
		defer w.stop()
		for i := range maxStandings {
			w.sees(fmt.Sprint("u", i))
		}
		if err := w.rights.Await(t.Context(), user("late"), pods); !errors.Is(err, ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		time.Sleep(2 * DefaultRefresh)
		if got := w.await("late"); got != "" {
			t.Errorf("late sees %q", got)
		}
		time.Sleep(2 * keptUnused)
		if s := w.rights.Stats(); s.Cached != 0 || w.rights.bytes != 0 || w.rights.answers != 0 {
			t.Errorf("%+v is remembered of nobody", s)
		}
	})
}

// TestTooManyAnswers: a part of what somebody may read is not served as all of it.
func TestTooManyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a", "b")
		defer w.stop()
		w.let("ann", true, "a")
		w.let("root", true, everywhere)
		w.rights.mu.Lock()
		w.rights.answers = maxAnswers - 1
		w.rights.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := w.rights.Await(ctx, user("ann"), pods); !errors.Is(err, ErrFull) || w.sees("ann") != "?" {
			t.Errorf("%v, and ann sees %q", err, w.sees("ann"))
		}
		if got := w.await("root"); got != "all" {
			t.Errorf("root sees %q", got)
		}
		w.rights.mu.Lock()
		w.rights.answers = 0
		w.rights.mu.Unlock()
		if got := w.await("ann"); got != "a" {
			t.Errorf("once there is room, ann sees %q", got)
		}
	})
}

// TestOneQuestionWithoutAnAnswer takes its namespace from a user in the end, and nothing else.
func TestOneQuestionWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a", "b")
		defer w.stop()
		w.let("ann", true, "a", "b")
		w.await("ann")
		answers := w.server.right
		w.server.mu.Lock()
		w.server.right = func(ctx context.Context, u User, a Attributes) (bool, error) {
			if a.Namespace == "a" {
				return false, errors.New("500")
			}
			return answers(ctx, u, a)
		}
		w.server.mu.Unlock()
		w.during(10*time.Minute, func(after time.Duration) {
			got, end := w.sees("ann"), DefaultRefresh+DefaultHold
			if after < end-DefaultRefresh && got != "a b" || after > end && got != "b" || got == "?" {
				t.Fatalf("after %v, ann sees %q", after, got)
			}
		})
	})
}

// TestTooManyNamespaces: whoever creates namespaces does not displace those of others.
func TestTooManyNamespaces(t *testing.T) {
	r := NewRights(RightsConfig{UserOf: UserOf("prod", nil)})
	r.found([]string{"shop", "web"})
	many := []string{}
	for i := range listedNamespaces {
		many = append(many, fmt.Sprintf("a%06d", i))
	}
	r.found(append(many, "shop", "web"))
	if len(r.namespaces) != maxNamespaces || !r.namespaces["shop"] || !r.namespaces["web"] {
		t.Errorf("%d namespaces, shop %v, web %v", len(r.namespaces), r.namespaces["shop"], r.namespaces["web"])
	}
}

// TestRandomRights: whatever is given and taken, nobody sees what they have not had within the time to
// refresh, and in the end everybody sees what they may.
func TestRandomRights(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var names []string
			for i := range 40 {
				names = append(names, fmt.Sprint("n", i))
			}
			w := newWorld(t, RightsConfig{}, names...)
			defer w.stop()
			w.set(func() { w.takes = 5 * time.Millisecond })
			lost := map[string]time.Time{} // when a right ended
			toggle := func(user, namespace string) {
				may := !w.may[user+" list "+namespace]
				w.let(user, may, namespace)
				if delete(lost, user+" "+namespace); !may {
					lost[user+" "+namespace] = time.Now()
				}
			}
			check := func() {
				for i := range 20 {
					name := fmt.Sprint("u", i)
					got := w.sees(name)
					if got == "?" {
						continue
					}
					for _, namespace := range strings.Fields(strings.ReplaceAll(got, "all", strings.Join(names, " "))) {
						all, whenAll := w.may[name+" list "], lost[name+" "]
						at, one := lost[name+" "+namespace]
						if !all && !w.may[name+" list "+namespace] && (!one || time.Since(at) > DefaultRefresh+settles) && time.Since(whenAll) > DefaultRefresh+settles {
							t.Fatalf("seed %d: %s sees %s, which it lost %v ago", seed, name, namespace, time.Since(at))
						}
					}
				}
			}
			for range 300 {
				for range random.IntN(5) {
					toggle(fmt.Sprint("u", random.IntN(20)), append(names, everywhere)[random.IntN(len(names)+1)])
				}
				time.Sleep(time.Second)
				check()
			}
			w.during(3*DefaultRefresh, func(time.Duration) { check() })
			for i := range 20 {
				name, want := fmt.Sprint("u", i), []string{}
				for _, namespace := range names {
					if w.may[name+" list "+namespace] {
						want = append(want, namespace)
					}
				}
				slices.Sort(want)
				text := strings.Join(want, " ")
				if w.may[name+" list "] {
					text = "all"
				}
				if got := w.sees(name); got != text {
					t.Errorf("seed %d: %s sees %q, want %q", seed, name, got, text)
				}
			}
		})
	}
}
