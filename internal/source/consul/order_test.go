package consul

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// after waits, in the time of a bubble.
func after(d time.Duration) { <-time.After(d) }

// TestReplayAfterAStaleSnapshot: the snapshot of the watch is ten seconds old.
func TestReplayAfterAStaleSnapshot(t *testing.T) {
	f := &fake{
		watch: func(_ int, out watchStream) error {
			tell(out, "+a@3 +gone@4 +kept@2 .")
			after(time.Second)
			tell(out, "+a@5 -gone@4 +a@7 +late@8 -late@8 +a@9 +b@10")
			return hold(out)
		},
		list: always("a@7 kept@2 c@8"),
		read: func(name string) (*pbresource.Resource, error) { return one("b@10"), nil },
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		first := w.take()
		if !strings.HasPrefix(first, "reset ") || !strings.HasSuffix(first, " =8") || strings.Contains(first, "gone") ||
			!strings.Contains(first, "+a@7") || !strings.Contains(first, "+c@8") || !strings.Contains(first, "+kept@2") {
			t.Errorf("the snapshot: %s", first)
		}
		after(time.Second)
		w.want(t, "after the replay", "+a@9 =9 +b@10 =10")
		if n := f.called("read b"); n != 0 {
			t.Errorf("%d reads: an update of what was listed shows that the watch has passed the list", n)
		}
	})
}

// TestDoubt: only the server knows whether a resource that is newer than
// everything listed was created after the list, or deleted before it.
func TestDoubt(t *testing.T) {
	f := &fake{
		watch: func(_ int, out watchStream) error {
			tell(out, ".")
			after(time.Second)
			tell(out, "+ghost@8 +ghost@9 +twin@10#first -ghost@9 -twin@10#first +twin@12#second +new@13 +new@14")
			return hold(out)
		},
		list: always("a@5"),
		read: func(name string) (*pbresource.Resource, error) {
			if name == "twin" {
				return one("twin@12#second"), nil
			}
			return nil, status.Error(codes.NotFound, "resource not found")
		},
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		w.want(t, "the snapshot", "reset +a@5 =5")
		after(time.Second)
		w.want(t, "live", "+twin@12 =12 +new@13 =13 +new@14 =14")
		for name, want := range map[string]int{"ghost": 1, "twin": 2, "new": 0} {
			if n := f.called("read " + name); n != want {
				t.Errorf("%s was read %d times, want %d", name, n, want)
			}
		}
	})
}

// TestDoubtInTheSnapshot: the same, reported before the list was read.
func TestDoubtInTheSnapshot(t *testing.T) {
	f := &fake{
		watch: func(_ int, out watchStream) error {
			tell(out, "+ghost@8 +new@9 .")
			after(3 * time.Second)
			tell(out, "+ghost@10 -ghost@10")
			return hold(out)
		},
		list: func(int) ([]*pbresource.Resource, error) {
			after(time.Second)
			return several("a@5"), nil
		},
		read: func(name string) (*pbresource.Resource, error) {
			if name == "new" {
				return one("new@9"), nil
			}
			return nil, status.Error(codes.PermissionDenied, "lacks permission")
		},
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		after(2 * time.Second)
		if got := w.take(); got != "reset +a@5 +new@9 =9" && got != "reset +new@9 +a@5 =9" {
			t.Errorf("the snapshot: %s", got)
		}
		after(2 * time.Second)
		w.want(t, "of what was dead", "")
		if n := f.called("read ghost"); n != 1 {
			t.Errorf("the ghost was read %d times", n)
		}
	})
}

// TestListsBesideTheWatch: lists find the changes that the watch does not
// report, and only those.
func TestListsBesideTheWatch(t *testing.T) {
	var began time.Time
	f := &fake{
		watch: func(_ int, out watchStream) error {
			tell(out, "+hidden@3 +a@5 +dropped@4 .")
			after(10 * time.Second)
			tell(out, "+a@6 +c@9")
			after(91 * time.Second) // behind the list
			tell(out, "-dropped@4 +a@10 +new@11 -new@11 +late@12")
			return hold(out)
		},
		list: func(n int) ([]*pbresource.Resource, error) {
			switch n {
			case 1:
				return several("hidden@3 a@5 dropped@4"), nil
			case 2:
				after(time.Until(began.Add(100 * time.Second)))
				return several("a@10 c@9 new@11"), nil
			}
			return several("a@10 c@9 late@12"), nil
		},
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		began = time.Now()
		w := watch()
		w.take()
		after(100*time.Second + 500*time.Millisecond)
		w.want(t, "before the watch reports it", "+a@6 =6 +c@9 =9")
		after(time.Second)
		w.want(t, "when the watch reports it", "-dropped@4 =9 +a@10 =10 +new@11 =11 -new@11 =11 +late@12 =12")
		after(2 * time.Second)
		w.want(t, "then", "-hidden@3 =12")
		after(5 * time.Minute)
		w.want(t, "after more lists", "")
	})
}

// TestWatchThatLosesSomething: such a watch is not waited for forever.
func TestWatchThatLosesSomething(t *testing.T) {
	f := quiet()
	f.list = func(n int) ([]*pbresource.Resource, error) {
		if n == 1 {
			return several("a@5"), nil
		}
		return several("a@5 lost@7"), nil
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		<-w.ended
		if !errors.Is(w.err, stream.ErrStalled) || !strings.Contains(w.err.Error(), "a list shows version 7, and the watch has not observed of it after 30s") {
			t.Errorf("error %v", w.err)
		}
		w.want(t, "meanwhile", "reset +a@5 =5")
		if got := watch().take(); !strings.Contains(got, "+lost@7") || !strings.HasSuffix(got, " =7") {
			t.Errorf("the next watch: %s", got)
		}
	})
}

// TestOlderVersionsAreAnotherOrder: in a list, in the watch, and in the snapshot of
// the next connection.
func TestOlderVersionsAreAnotherOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		events string // after the snapshot a@5 b@9
		second string // list
	}{
		{"a list shows what was hidden", "", "a@5 b@9 old@2"},
		{"the watch reports an older one", "+b@10 +c@6", "a@5 b@10 c@6"},
		{"the watch was cut off meanwhile", "cut", "a@4 b@9"},
		{"another one of the same version", "cut", "a@5 b@9#other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{
				watch: func(n int, out watchStream) error {
					tell(out, ".")
					after(time.Second)
					switch {
					case n > 1:
					case c.events == "cut":
						return status.Error(codes.Aborted, "watch closed by the storage backend (possibly due to snapshot restoration)")
					default:
						tell(out, c.events)
					}
					return hold(out)
				},
				list: func(n int) ([]*pbresource.Resource, error) {
					if n == 1 {
						return several("a@5 b@9"), nil
					}
					return several(c.second), nil
				},
			}
			bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
				first := watch()
				<-first.ended
				wantBehind := c.events != "cut"
				if errors.Is(first.err, stream.ErrBehind) != wantBehind {
					t.Errorf("ended with %v", first.err)
				}
				second := watch()
				if got := second.take(); !strings.HasPrefix(got, "reset ") {
					t.Errorf("then it sent %q, %v", got, second.err)
				}
				if first.epoch[0] == second.epoch[0] {
					t.Errorf("the epoch is still %s", second.epoch[0])
				}
				if !wantBehind {
					return
				}
				if !strings.Contains(first.err.Error(), "the server was restored or replaced, or a policy shows more than before") {
					t.Errorf("the reason is missing: %v", first.err)
				}
			})
		})
	}
}

// TestNewestWasDeleted: the order continues from where it was, though the list
// shows nothing as new.
func TestNewestWasDeleted(t *testing.T) {
	f := &fake{
		watch: func(n int, out watchStream) error {
			tell(out, ".")
			if n == 1 {
				after(time.Second)
				return status.Error(codes.Internal, "failed next: context deadline exceeded")
			}
			return hold(out)
		},
		list: func(n int) ([]*pbresource.Resource, error) {
			if n == 1 {
				return several("a@5 b@9"), nil
			}
			return several("a@5"), nil
		},
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		first := watch()
		<-first.ended
		second := watch()
		second.want(t, "second", "reset +a@5 =9")
		if first.epoch[0] != second.epoch[0] {
			t.Errorf("epoch %s became %s", first.epoch[0], second.epoch[0])
		}
	})
}

// TestServerWithoutMarker: one that has nothing to send is silent. The list is
// read anyway, and again once the watch is known to run.
func TestServerWithoutMarker(t *testing.T) {
	f := &fake{
		watch: func(_ int, out watchStream) error {
			after(10 * time.Second)
			tell(out, "+b@7")
			return hold(out)
		},
		list: func(n int) ([]*pbresource.Resource, error) {
			if n == 1 {
				return several("a@5"), nil // deleted before the server began to watch
			}
			return several("b@7"), nil
		},
		read: func(string) (*pbresource.Resource, error) { return one("b@7"), nil },
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		after(firstEventTimeout / 2)
		w.want(t, "at first", "")
		after(firstEventTimeout)
		w.want(t, "then", "reset +a@5 =5")
		after(10*time.Second + auditAfter)
		w.want(t, "in the end", "+b@7 =7 -a@5 =7")
	})
}

// TestWatchThatBeginsBesideAnEarlyList: the same, where the watch sends
// something before the list arrives.
func TestWatchThatBeginsBesideAnEarlyList(t *testing.T) {
	f := &fake{
		watch: func(_ int, out watchStream) error {
			after(4 * time.Second)
			tell(out, "+b@7")
			return hold(out)
		},
		list: func(n int) ([]*pbresource.Resource, error) {
			if n == 1 {
				after(5 * time.Second)
				return several("a@5"), nil
			}
			return several("b@7"), nil
		},
		read: func(string) (*pbresource.Resource, error) { return one("b@7"), nil },
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		after(10 * time.Second)
		if got := w.take(); !strings.HasPrefix(got, "reset ") || !strings.HasSuffix(got, " =7 -a@5 =7") {
			t.Errorf("got %s", got)
		}
	})
}

// emptied is a Consul whose watch is cut off, and whose second list is empty.
func emptied() *fake {
	return &fake{
		watch: func(n int, out watchStream) error {
			tell(out, ".")
			after(time.Second)
			if n == 1 {
				return status.Error(codes.Unavailable, "error reading from server: EOF")
			}
			tell(out, "+c@3")
			return hold(out)
		},
		list: func(n int) ([]*pbresource.Resource, error) { return several([]string{"a@5", ""}[n-1]), nil },
		read: func(string) (*pbresource.Resource, error) { return one("c@3"), nil },
	}
}

// TestReplacedByAnEmptyOne: a server without a cluster name that has lost
// everything may be another one. Its versions count from the beginning.
func TestReplacedByAnEmptyOne(t *testing.T) {
	bubble(t, emptied(), Config{}, func(t *testing.T, watch func() *running) {
		first := watch()
		<-first.ended
		second := watch()
		second.want(t, "an empty one", "reset =0")
		after(2 * time.Second)
		second.want(t, "it counts", "+c@3 =3")
		if first.epoch[0] == second.epoch[0] {
			t.Errorf("the epoch is still %s", second.epoch[0])
		}
	})
}

// TestEmptiedInTheSameCluster: everything was deleted, and the order continues.
// A server of the same cluster that counts from the beginning was restored.
func TestEmptiedInTheSameCluster(t *testing.T) {
	f := emptied()
	f.roots = func(int) (string, error) { return "x.consul", nil }
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		first := watch()
		<-first.ended
		second := watch()
		<-second.ended
		second.want(t, "an empty one", "reset =5")
		if !errors.Is(second.err, stream.ErrBehind) || first.epoch[0] != second.epoch[0] {
			t.Errorf("ended with %v, in epoch %s after %s", second.err, second.epoch[0], first.epoch[0])
		}
	})
}
