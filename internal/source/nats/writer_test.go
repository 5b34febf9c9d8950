//go:build servers

package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// writer writes to a bucket without retrying: an error means that the outcome is
// unknown. It is used by one goroutine at a time.
type writer struct {
	t      testing.TB
	server *realserver.Server
	config jetstream.KeyValueConfig
	conn   *nats.Conn
	closed chan struct{}
}

// connect returns a connection that does not reconnect.
func (w *writer) connect() (*nats.Conn, error) {
	if w.conn != nil && w.conn.IsConnected() {
		return w.conn, nil
	}
	w.close()
	closed := make(chan struct{})
	conn, err := nats.Connect("nats://"+w.server.Addr(), nats.NoReconnect(),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err == nil {
		w.conn, w.closed = conn, closed
	}
	return conn, err
}

func (w *writer) close() {
	if w.conn != nil {
		w.conn.Close()
		<-w.closed
		w.conn = nil
	}
}

func (w *writer) subject(key string) string { return "$KV." + w.config.Bucket + "." + key }

func (w *writer) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	conn, err := w.connect()
	if err != nil {
		return 0, err
	}
	answer, err := conn.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"`
	}
	switch err := json.Unmarshal(answer.Data, &ack); {
	case err != nil:
		return 0, err
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Seq == 0:
		return 0, fmt.Errorf("acknowledged with %q", answer.Data)
	}
	return ack.Seq, nil
}

func (w *writer) put(ctx context.Context, key, value string) (stream.Resource, error) {
	seq, err := w.publish(ctx, &nats.Msg{Subject: w.subject(key), Data: []byte(value)})
	return stream.Resource{Key: key, Revision: seq, Value: []byte(value)}, err
}

func (w *writer) delete(ctx context.Context, key string) (uint64, error) {
	return w.publish(ctx, &nats.Msg{Subject: w.subject(key), Header: nats.Header{headerOperation: {"DEL"}}})
}

// list reads the bucket with the library's own watcher.
func (w *writer) list(ctx context.Context) (all []stream.Resource, revision uint64, err error) {
	kv, err := w.keyValue(ctx)
	if err != nil {
		return nil, 0, err
	}
	watcher, err := kv.WatchAll(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer watcher.Stop()
	for {
		select {
		case e := <-watcher.Updates():
			if e == nil {
				return all, revision, nil
			}
			revision = max(revision, e.Revision())
			if e.Operation() == jetstream.KeyValuePut {
				all = append(all, stream.Resource{Key: e.Key(), Revision: e.Revision(), Value: e.Value()})
			}
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

func (w *writer) jetstream() (jetstream.JetStream, error) {
	conn, err := w.connect()
	if err != nil {
		return nil, err
	}
	return jetstream.New(conn)
}

func (w *writer) keyValue(ctx context.Context) (jetstream.KeyValue, error) {
	js, err := w.jetstream()
	if err != nil {
		return nil, err
	}
	return js.KeyValue(ctx, w.config.Bucket)
}

// create makes the bucket, after deleting the existing one.
func (w *writer) create() error {
	js, err := w.jetstream()
	if err != nil {
		return err
	}
	err = js.DeleteKeyValue(within(w.t), w.config.Bucket)
	if err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) && !strings.Contains(err.Error(), "not found") {
		return err
	}
	_, err = js.CreateKeyValue(within(w.t), w.config)
	return err
}
