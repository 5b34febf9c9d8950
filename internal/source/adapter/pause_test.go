package adapter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errEnded = errors.New("ended")

func TestFor(t *testing.T) {
	for name, c := range map[string]struct {
		d, ends time.Duration // ends 0: the context does not
		took    time.Duration
		want    error
	}{
		"a while":             {time.Minute, 0, time.Minute, nil},
		"no time":             {0, 0, 0, nil},
		"less than no time":   {-time.Minute, 0, 0, nil},
		"until the end":       {time.Hour, time.Minute, time.Minute, errEnded},
		"no time, at the end": {0, -1, 0, errEnded},
		"after the end":       {time.Hour, -1, 0, errEnded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				switch {
				case c.ends < 0:
					end(errEnded)
				case c.ends > 0:
					time.AfterFunc(c.ends, func() { end(errEnded) })
				}
				began := time.Now()
				if err := PauseFor(ctx, c.d); !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
			})
		})
	}
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Minute)
		if err := PauseUntil(t.Context(), at); err != nil || !time.Now().Equal(at) {
			t.Errorf("error %v at %v, want none at %v", err, time.Now(), at)
		}
		if err := PauseUntil(t.Context(), time.Time{}); err != nil || !time.Now().Equal(at) {
			t.Errorf("the zero time: error %v at %v", err, time.Now())
		}
	})
}
