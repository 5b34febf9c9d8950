package h2

import (
	"crypto/tls"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"golang.org/x/net/http2"
)

// flood bounds how many frames a client may send that ask for nothing: a PING, settings, a reset, a
// window for little. Each costs some of what it has left, which comes back with the time, and with what the client is
// sent.
type flood struct {
	left float64
	at   time.Time // of left
}

const (
	// floodBurst is how many such frames a client may send at once, and floodRate how many in a second.
	floodBurst = 10_000
	floodRate  = 1_000
	// resetCost is what a stream costs that is reset before its request is handled, or for a fault of the client: a thousand
	// at once, and a hundred in a second. A detached stream is ended by a reset, and costs detachedCost.
	resetCost    = 10
	detachedCost = 4
	// streamCost is what a frame costs for each stream whose window it changes.
	streamCost = 1.0 / 8
	// dataCredit is what a frame of data gives back: a client answers it with a window for the stream and for the
	// connection. A frame of less than smallData that uses a window up gives nothing back.
	dataCredit = 4
	// smallData is how many bytes a frame of a body has that costs nothing.
	smallData = 256
	// recordHead is how many bytes a record of TLS with a frame has at most beside it; one of a few bytes is granted three for each.
	// wasteCost is what each other byte costs that is in no frame. An update of keys has 27 of them.
	recordHead = 32
	wasteCost  = 1.0 / 16
	// readAtMost is how many bytes of TLS the client may send before something comes of it: more than the longest record, and one that
	// is not complete.
	readAtMost = 40 << 10
)

// wasteMeter reads from a connection with TLS, and charges what its client sends beside its frames and the heads of their
// records: updates of keys, records of nothing, padding, messages that do not end.
//
// Owned by the goroutine that reads.
type wasteMeter struct {
	*conn
	secure  *tls.Conn
	beneath *netconn.StallTimeoutConn
	useful  int64 // bytes so far, with those that were read before
	waste   int64 // bytes that have been charged
}

// Read implements io.Reader.
func (m *wasteMeter) Read(p []byte) (int, error) {
	m.beneath.HearAtMost = m.beneath.Heard() + readAtMost
	n, err := m.secure.Read(p)
	if n > 0 {
		m.useful += int64(n + min(3*n, recordHead))
	}
	if more := m.beneath.Heard() - m.useful - m.waste; more > 0 { // or crypto/tls has read ahead, once
		m.waste += more
		m.mu.Lock()
		defer m.mu.Unlock()
		if err := m.flood.pay(wasteCost * float64(more)); err != nil {
			return 0, err
		}
	}
	return n, err
}

// pay takes the cost of a frame. It returns an error if there is not enough left.
func (f *flood) pay(cost float64) error {
	if f.left -= cost; f.left >= 0 {
		return nil
	}
	now := time.Now()
	f.left = min(f.left+now.Sub(f.at).Seconds()*floodRate, floodBurst)
	if f.at = now; f.left < 0 {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return nil
}

// credit gives back the cost of frames.
func (f *flood) credit(n float64) { f.left = min(f.left+n, floodBurst) }
