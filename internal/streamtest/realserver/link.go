package realserver

import (
	"context"
	"net"
	"sync"
)

// link is one connection through the proxy.
type link struct {
	// Static after construction.
	proxy  *Proxy
	ctx    context.Context
	cancel context.CancelFunc // ends it with a reset
	client *net.TCPConn
	ended  chan struct{} // closed when all of its goroutines have ended

	mu    sync.Mutex // guards flows
	flows [2]*flow   // by the side that they lead to; nil before it is connected
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	l := &link{proxy: p, client: client, ended: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// run connects to the target and carries bytes until both ends have closed, or
// until one is broken or the link is cut: then both are reset.
func (l *link) run(target string) {
	defer l.cancel()
	upstream, err := l.dial(target)
	if err != nil {
		reset(l.client) // an unreachable target has not sent an end either
		return
	}
	l.connect(upstream)
	stop := context.AfterFunc(l.ctx, func() {
		reset(l.client)
		reset(upstream)
	})
	var carrying sync.WaitGroup
	for _, f := range l.flows {
		carrying.Go(f.run)
	}
	carrying.Wait()
	if stop() {
		l.client.Close()
		upstream.Close()
		return
	}
	reset(l.client) // or that is still under way
	reset(upstream)
}

// dial waits out a stall: an unreachable target does not answer.
func (l *link) dial(target string) (*net.TCPConn, error) {
	for w := l.proxy.weather.Load(); w.stalled; w = l.proxy.weather.Load() {
		if !w.wait(l.ctx, -1) {
			return nil, l.ctx.Err()
		}
	}
	var d net.Dialer
	conn, err := d.DialContext(l.ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

func (l *link) connect(upstream *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.proxy
	l.flows[Client] = newFlow(l, upstream, l.client, &p.toClient)
	l.flows[Upstream] = newFlow(l, l.client, upstream, &p.toTarget)
}

func (l *link) halfClose(side Side) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flows[side]; f != nil {
		f.finish()
	}
}

// reset closes a connection like a machine without a record of it.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}
