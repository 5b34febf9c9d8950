// Package sourcetest proves that a [stream.Source] keeps the contract: [Run] puts it through one suite.
// A source that passes needs no tests of its own for what all sources have in common.
package sourcetest

import (
	"fmt"
	"github.com/watchtide/watchtide/internal/streamtest"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Timeout is how long the suite waits for a source to show the expected
// state. Only a failing source reaches it.
const Timeout = 15 * time.Second

// Harness is one source under test with its upstream, created for each test of the
// suite and closed by t.Cleanup. The upstream is empty at first.
type Harness struct {
	// Source follows one collection of the upstream. Required.
	Source stream.Source
	// Put creates or replaces a resource upstream; value is JSON text. Required.
	Put func(key, value string) error
	// Delete removes a resource upstream. Required.
	Delete func(key string) error

	// Transaction makes all the writes visible at one revision. Nil: the
	// upstream has no transactions.
	Transaction func(writes []Write) error
	// Disconnect cuts the connection of the Watch under way; the next Watch finds
	// the upstream again. Nil: there is no connection to cut.
	Disconnect func()
	// Restart stops the upstream and starts it again with the same content and
	// the same revision order. Nil: it cannot.
	Restart func()
	// Restore empties the upstream, in a new revision order, as a restored backup
	// does. Nil: it cannot.
	Restore func()

	// Resumes means that the upstream keeps history: a Watch from a position a
	// few changes ago must not call Reset.
	Resumes bool

	// Key returns the name of the i-th resource. Nil: names with slashes,
	// spaces, quotes and letters of several scripts.
	Key func(i int) string
	// Value returns JSON text on one line for a key, different for each n. Nil:
	// values with large numbers, escapes and U+2028. The source must deliver it byte
	// for byte.
	Value func(key string, n int) string
}

// Write is one write of a transaction.
type Write = streamtest.Write

// Run runs the suite. newHarness is called once for each test.
func Run(t *testing.T, newHarness func(t *testing.T) *Harness) {
	for _, c := range conformance {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			if why := c.skip(h); why != "" {
				t.Skip(why)
			}
			c.run(&fixture{Harness: h, t: t})
		})
	}
}

// conformanceCase is one test of the suite. needs are its requirements on the
// upstream.
type conformanceCase struct {
	name  string
	needs need
	run   func(*fixture)
}

type need uint8

const (
	needTransaction need = 1 << iota
	needDisconnect
	needRestart
	needRestore
	needHistory
)

func (c conformanceCase) skip(h *Harness) string {
	for _, n := range []struct {
		need need
		has  bool
		why  string
	}{
		{needTransaction, h.Transaction != nil, "the upstream has no transactions"},
		{needDisconnect, h.Disconnect != nil, "the upstream has no connection to cut"},
		{needRestart, h.Restart != nil, "the upstream cannot be restarted"},
		{needRestore, h.Restore != nil, "the upstream cannot be restored"},
		{needHistory, h.Resumes, "the upstream keeps no history"},
	} {
		if c.needs&n.need != 0 && !n.has {
			return n.why
		}
	}
	return ""
}

var conformance = []conformanceCase{
	{"empty snapshot", 0, conformEmpty},
	{"snapshot", 0, conformSnapshot},
	{"live changes", 0, conformLive},
	{"a key is created again", 0, conformRebirth},
	{"transaction is one commit", needTransaction, conformTransaction},
	{"ends with its context", 0, conformCancel},
	{"ends with the sink's error", 0, conformSinkError},
	{"continues after a pause", 0, conformPause},
	{"continues without a snapshot", needHistory, conformResume},
	{"reports when it has caught up", 0, conformCaughtUp},
	{"does not resume in a foreign epoch", 0, conformForeignEpoch},
	{"does not resume from the future", 0, conformFuture},
	{"same epoch for every reader", 0, conformSameEpoch},
	{"ends when the connection is cut", needDisconnect, conformDisconnect},
	{"another epoch after a restore", needRestore, conformRestore},
	{"survives a restart", needRestart, conformRestart},
	{"random writes and cuts through a watch", 0, conformRandom},
}

// key and value are the harness's, or the awkward ones.
func (f *fixture) key(i int) string {
	if f.Key != nil {
		return f.Key(i)
	}
	return awkwardKeys[i%len(awkwardKeys)] + fmt.Sprint(i)
}

func (f *fixture) value(key string, n int) string {
	if f.Value != nil {
		return f.Value(key, n)
	}
	return fmt.Sprintf(awkwardValues[n%len(awkwardValues)], n)
}

var awkwardKeys = []string{"plain", "with/slash/", "with space ", `quo"te\`, "ключ", "鍵", "per%20cent", "a=b&c?"}

// awkwardValues are JSON on one line; %d is the number that makes each one
// different.
var awkwardValues = []string{
	`{"n":%d}`,
	`{"big":9007199254740993,"n":%d}`,
	`{"z":1,"a":[null,true,1e400,-0.0],"n":%d}`,
	"{\"text\":\"tab\\t, line\\n, \u2028, \\ud83d\\ude00, é\",\"n\":%d}",
	`%d`,
	`["%d"]`,
}
