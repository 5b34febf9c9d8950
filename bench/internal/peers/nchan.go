package peers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// nchan is nginx with the module nchan: an EventSource location for subscribers,
// and one that takes an event for each POST.
func nchan() Peer { return Peer{Name: "nginx, nchan", Start: startNchan} }

func startNchan(ctx context.Context, o Options) (*Server, error) {
	module := filepath.Join(nginxModules, "ngx_nchan_module.so")
	if _, err := os.Stat(module); err != nil {
		return nil, missing("nchan", "libnginx-mod-nchan")
	}
	backlog := o.Backlog
	if backlog == 0 {
		backlog = DefaultBacklog
	}
	// Events beyond the buffer are lost for subscribers that have not read them.
	// An event takes its bytes and less than a KiB in the shared memory.
	memory := fmt.Sprintf("	nchan_shared_memory_size %dM;", 128+backlog*(o.EventBytes+1024)>>20)
	location := fmt.Sprintf(`		client_body_buffer_size 1m;
		client_max_body_size 64m;
		nchan_channel_id events;
		nchan_message_buffer_length %d;
		nchan_message_timeout 1m;
		location = /events { nchan_subscriber eventsource; nchan_subscriber_first_message newest; }
		location = /publish { nchan_publisher http; }`, backlog)
	n, err := startNginx(ctx, o, []string{module}, memory, location)
	if err != nil {
		return nil, err
	}
	to, err := net.Dial("tcp", n.address)
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	publisher := nchanPublisher{to: to, answers: bufio.NewReader(to)}
	return &Server{
		Address: n.address, Request: get("/events"), Marker: []byte("\ndata: "), PIDs: n.pids,
		Publish: publisher.publish,
		Stop: func() error {
			to.Close()
			return n.stop()
		},
	}, nil
}

// nchanPublisher posts events over one connection, so that they stay in order.
type nchanPublisher struct {
	to      net.Conn
	answers *bufio.Reader
	posts   []byte
}

// publish sends the posts of all events at once, and then reads the answers.
func (p *nchanPublisher) publish(events [][]byte) error {
	p.posts = p.posts[:0]
	for _, e := range events {
		p.posts = append(p.posts, "POST /publish HTTP/1.1\r\nHost: bench\r\nAccept: text/json\r\nContent-Length: "...)
		p.posts = append(strconv.AppendInt(p.posts, int64(len(e)), 10), "\r\n\r\n"...)
		p.posts = append(p.posts, e...)
	}
	if _, err := p.to.Write(p.posts); err != nil {
		return fmt.Errorf("publish to nchan: %w", err)
	}
	for range events {
		if err := p.answer(); err != nil {
			return fmt.Errorf("publish to nchan: %w", err)
		}
	}
	return nil
}

func (p *nchanPublisher) answer() error {
	res, err := http.ReadResponse(p.answers, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %s: %s", res.Status, said)
	}
	return err
}
