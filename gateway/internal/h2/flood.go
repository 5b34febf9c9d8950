package h2

import (
	"time"

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
)

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
