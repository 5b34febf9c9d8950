package load

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// Follow makes a request for a stream, and returns it once its snapshot was read. Its reads block in the
// system, so that Go's poller does not affect the measurement.
func Follow(address string, request []byte) (*os.File, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		// The id ends the event; the rest of this read, an empty line and the end
		// of a chunk, came with it and is read by then.
		if strings.HasPrefix(lines.Text(), "id: ") && !strings.Contains(lines.Text(), "/") {
			return c.(*net.TCPConn).File()
		}
	}
	return nil, fmt.Errorf("no end of the snapshot from %s", address)
}

// FirstBytes calls commit n times, a millisecond apart, so that all goroutines are asleep when a change comes. It
// returns, sorted, how many microseconds after the time that commit returns the stream f had a byte.
func FirstBytes(f *os.File, n int, commit func() (time.Time, error)) ([]float64, error) {
	arrived, failed := make(chan time.Time), make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		for range n {
			if _, err := f.Read(buf); err != nil {
				failed <- err
				return
			}
			arrived <- time.Now()
		}
	}()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	took := make([]float64, 0, n)
	for range n {
		<-ticker.C
		committed, err := commit()
		if err != nil {
			return nil, err
		}
		select {
		case at := <-arrived:
			took = append(took, float64(at.Sub(committed).Nanoseconds())/1000)
		case err := <-failed:
			return nil, err
		}
	}
	slices.Sort(took)
	return took, nil
}
