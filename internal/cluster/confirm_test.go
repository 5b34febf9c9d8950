package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
)

// streams are open streams, each of the user of a token, which ask again when they are told to.
type streams struct {
	tokens *Tokens
	mu     sync.Mutex
	open   map[string]*access.Principal // by token
}

// verify opens a stream.
func (s *streams) verify(t *testing.T, text string) {
	t.Helper()
	who, err := s.tokens.Verify(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[text] = who
}

// recheck asks about each stream again.
func (s *streams) recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for text, who := range s.open {
		now, ok := s.tokens.Again(who, IDOf(access.HashOfToken(text)))
		if s.open[text] = now; !ok {
			delete(s.open, text)
		}
	}
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// run reviews tokens until the test ends.
func run(t *testing.T, tokens *Tokens) *streams {
	s := &streams{tokens: tokens, open: map[string]*access.Principal{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tokens.Run(ctx, s.recheck)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// TestLostTokenEndsItsStreams within the configured time, and no earlier than the server says so.
func TestLostTokenEndsItsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(ann, nil)
		open := run(t, newTokens(s))
		text := token(nil)
		open.verify(t, text)
		open.recheck()
		s.reviews()
		time.Sleep(5 * time.Minute)
		if n := s.reviews(); n < 12 || n > 16 || open.count() != 1 {
			t.Errorf("%d reviews in five minutes, %d streams are open", n, open.count())
		}
		s.answer(Review{}, nil)
		time.Sleep(DefaultRefresh)
		synctest.Wait()
		if open.count() != 0 {
			t.Error("the stream of a token that is not accepted is open")
		}
		if who, err := open.tokens.Verify(t.Context(), text); who != nil || reason(t, err) != access.InvalidToken {
			t.Errorf("a new request: %v, %v", who, err)
		}
		s.reviews()
		s.answer(ann, nil)
		time.Sleep(5 * time.Minute)
		if n := s.reviews(); n != 0 {
			t.Errorf("%d reviews of a token that nobody uses", n)
		}
		open.verify(t, text)
		open.recheck()
		if open.count() != 1 {
			t.Error("a token that is accepted again has no streams")
		}
	})
}

// TestTokenWithOtherGroups: the groups of open streams follow.
func TestTokenWithOtherGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(ann, nil)
		open := run(t, newTokens(s))
		text := token(nil)
		open.verify(t, text)
		open.recheck()
		open.mu.Lock()
		before := open.open[text]
		open.mu.Unlock()
		other := ann
		other.User.Groups = []string{"guests"}
		s.answer(other, nil)
		time.Sleep(DefaultRefresh)
		synctest.Wait()
		open.mu.Lock()
		defer open.mu.Unlock()
		if now := open.open[text]; now == nil || !slices.Equal(now.Groups, other.User.Groups) || !now.Expires.Equal(before.Expires) {
			t.Errorf("got %+v, before %+v", now, before)
		}
	})
}

// TestServerThatDoesNotConfirm: streams go on while the server does not answer, until the review of the beginning is too old.
func TestServerThatDoesNotConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(ann, nil)
		open := run(t, newTokens(s))
		text := token(nil)
		open.verify(t, text)
		open.recheck()
		s.reviews()
		s.answer(Review{}, errors.New("down"))
		time.Sleep(30 * time.Minute)
		if n := s.reviews(); n == 0 || n > 30*60 || open.count() != 1 {
			t.Errorf("%d reviews in half an hour, %d streams are open", n, open.count())
		}
		s.answer(Review{}, nil)
		time.Sleep(DefaultRefresh)
		synctest.Wait()
		if open.count() != 0 {
			t.Error("the stream is open although the server says no again")
		}
	})
}

// TestManyTokensAreReviewedInTurn: at a bounded rate, and all of them.
func TestManyTokensAreReviewedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2000
		s := &server{}
		var withdrawn atomic.Bool
		s.token = func(context.Context, string) (Review, error) {
			if withdrawn.Load() {
				return Review{}, nil
			}
			return ann, nil
		}
		open := run(t, newTokens(s))
		for i := range many {
			open.verify(t, token(map[string]any{"n": i}))
		}
		open.recheck()
		s.reviews()
		time.Sleep(time.Minute)
		if n := s.reviews(); n < 60*confirmsPerSecond*2/3 || n > 61*confirmsPerSecond {
			t.Errorf("%d reviews in a minute", n)
		}
		withdrawn.Store(true)
		time.Sleep(many/confirmsPerSecond*time.Second + DefaultRefresh)
		synctest.Wait()
		if open.count() != 0 {
			t.Errorf("%d of %d streams are open", open.count(), many)
		}
	})
}

// TestUnknownTokenIsAcceptedAgain: a session outlives the process that has seen its token, for as long as one review holds.
func TestUnknownTokenIsAcceptedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.answer(ann, nil)
		before, after, text := newTokens(s), newTokens(s), token(nil)
		who, err := before.Verify(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		id := IDOf(access.HashOfToken(text))
		if again, ok := after.Again(who, id); again != who || !ok {
			t.Errorf("at another process: %v, %t", again, ok)
		}
		if again, ok := (*Tokens)(nil).Again(who, id); again != nil || ok {
			t.Errorf("without a cluster: %v, %t", again, ok)
		}
		elsewhere := *who
		elsewhere.Issuer = fmt.Sprint("not ", who.Issuer)
		if _, ok := before.Again(&elsewhere, id); ok {
			t.Error("a principal of another cluster is accepted")
		}
	})
}
