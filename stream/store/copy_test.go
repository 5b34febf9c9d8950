package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// upstream is a target in memory.
type upstream struct {
	wrong string // the key that it refuses before the first write
	after func(n int)

	mu  sync.Mutex // guards has
	has map[string]string
}

func (u *upstream) Check(key string, _ []byte) error {
	if key == u.wrong {
		return errors.New("it cannot be here")
	}
	return nil
}

func (u *upstream) Create(_ context.Context, key string, value []byte) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if has, ok := u.has[key]; ok && has != string(value) {
		return false, errors.New("it has another value")
	} else if ok {
		return false, nil
	}
	u.has[key] = string(value)
	if u.after != nil {
		u.after(len(u.has))
	}
	return true, nil
}

func copyTo(ctx context.Context, path string, to map[string]*upstream, watches ...string) (Copied, error) {
	return Copy(ctx, path, watches, func(watch string) (Target, error) {
		if to[watch] == nil {
			return nil, fmt.Errorf("no target for %s", watch)
		}
		return to[watch], nil
	}, func(Copied) {})
}

func TestCopy(t *testing.T) {
	path := newFile(t)
	filledFile(t, path)
	to := map[string]*upstream{"notes": {has: map[string]string{"k7": `{"n":7,"html":"<b>&"}`}}, "other": {has: map[string]string{}}}
	if n, err := copyTo(t.Context(), path, to); n != (Copied{Created: 51, Present: 1, All: 52}) || err != nil {
		t.Fatalf("%+v, error %v", n, err)
	}
	if n := to["notes"].has; len(n) != 51 || n["k3"] != `{"n":3,"html":"<b>&"}` || n["\xff"] != "1" || to["other"].has["k"] != "2" {
		t.Errorf("notes %v, other %v", n, to["other"].has)
	}
	if n, err := copyTo(t.Context(), path, to, "other"); n != (Copied{Present: 1, All: 1}) || err != nil {
		t.Errorf("again: %+v, error %v", n, err)
	}
}

// TestCopyThatIsRefused: nothing is written if something is wrong that can be known before.
func TestCopyThatIsRefused(t *testing.T) {
	path := newFile(t)
	filledFile(t, path)
	for name, test := range map[string]struct {
		wrong   string
		watches []string
		want    string
	}{
		"a key":        {wrong: "k", want: `watch other: key "k": it cannot be here`},
		"no target":    {watches: []string{"other", "notes"}, wrong: "none", want: "no target for notes"},
		"no such name": {watches: []string{"other", "missing"}, want: "has no watch missing"},
	} {
		t.Run(name, func(t *testing.T) {
			to := map[string]*upstream{"notes": {has: map[string]string{}}, "other": {has: map[string]string{}, wrong: test.wrong}}
			if test.wrong == "none" {
				delete(to, "notes")
			}
			n, err := copyTo(t.Context(), path, to, test.watches...)
			if err == nil || !strings.Contains(err.Error(), test.want) || n.Created != 0 {
				t.Errorf("%+v, error %v, want %q", n, err, test.want)
			}
			for watch, u := range to {
				if len(u.has) > 0 {
					t.Errorf("%s has %v", watch, u.has)
				}
			}
		})
	}
}

// TestCopyThatIsBrokenOff: a value that is there stays, and so does what was copied; a second run
// goes on.
func TestCopyThatIsBrokenOff(t *testing.T) {
	path := newFile(t)
	filledFile(t, path)
	u := &upstream{has: map[string]string{"k30": "mine"}}
	n, err := copyTo(t.Context(), path, map[string]*upstream{"notes": u}, "notes")
	if err == nil || !strings.Contains(err.Error(), `watch notes: key "k30": it has another value`) || u.has["k30"] != "mine" {
		t.Errorf("error %v, k30 is %s", err, u.has["k30"])
	}
	if n.Created != len(u.has)-1 {
		t.Errorf("%+v, and %d are there", n, len(u.has)-1)
	}
	clear(u.has)
	ctx, stop := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	u.after = func(int) { stop(interrupted) }
	n, err = copyTo(ctx, path, map[string]*upstream{"notes": u}, "notes")
	if !errors.Is(err, interrupted) || len(u.has) == 0 || len(u.has) > copyWorkers {
		t.Errorf("%+v, error %v, %d are there", n, err, len(u.has))
	}
	before := len(u.has)
	u.after = nil
	if n, err = copyTo(t.Context(), path, map[string]*upstream{"notes": u}, "notes"); n.Created+n.Present != 51 || n.Present != before || err != nil || len(u.has) != 51 {
		t.Errorf("%+v, error %v, %d are there", n, err, len(u.has))
	}
}
