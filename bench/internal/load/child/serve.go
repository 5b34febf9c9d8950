package child

import (
	"errors"
	"io"
	"net/rpc"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// Serve executes orders until in ends.
func Serve(in io.ReadCloser, out io.WriteCloser) error {
	o := &Orders{loop: &loop{orders: make(chan order), ended: make(chan struct{})}}
	server := rpc.NewServer()
	if err := server.Register(o); err != nil {
		return err
	}
	go func() {
		server.ServeConn(pipes{in, out})
		close(o.loop.ended)
	}()
	return o.loop.run()
}

// loop owns the Client: orders are executed between two polls.
type loop struct {
	orders chan order
	ended  chan struct{} // closed when no more orders can arrive
	client *load.Client  // nil until New
	kept   []byte
}

type order struct {
	do   func(*loop) error
	done chan error
}

// pause is how long an order waits if nothing arrives.
const pause = time.Millisecond

func (l *loop) run() error {
	for {
		if l.client != nil {
			if _, err := l.client.Poll(pause); err != nil {
				return err
			}
		}
		select {
		case o := <-l.next():
			o.done <- o.do(l)
		case <-l.ended:
			return l.close()
		default:
		}
	}
}

// next waits for an order if there is nothing else to do.
func (l *loop) next() <-chan order {
	if l.client != nil {
		return l.orders
	}
	first := make(chan order, 1)
	select {
	case o := <-l.orders:
		first <- o
	case <-l.ended:
	}
	return first
}

func (l *loop) close() error {
	if l.client == nil {
		return nil
	}
	return l.client.Close()
}

// do has the loop call f.
func (l *loop) do(f func(*loop) error) error {
	o := order{do: f, done: make(chan error, 1)}
	select {
	case l.orders <- o:
		return <-o.done
	case <-l.ended:
		return errors.New("ended")
	}
}
