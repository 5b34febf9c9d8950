package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// connection is a connection to a member of a cluster. Static after
// construction.
type connection struct {
	client   *clientv3.Client
	cluster  uint64
	revision uint64 // of the cluster, when the connection was made
	ordered  bool   // see version.ordered
	recalls  bool   // it knows what was deleted before; see history
	inUse    uint64 // bytes of the member's store
	largest  int    // bytes of a message
}

// connect connects to a member, logs in, and makes sure that it can report the
// state that its cluster agrees on.
func (s *Source) connect(ctx context.Context, e endpoint, largest int) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.ConnectTimeout,
		fmt.Errorf("no answer within %v", s.config.ConnectTimeout))
	defer cancel()
	config := s.config.client(ctx, e)
	config.MaxCallRecvMsgSize = largest
	client, err := clientv3.New(config)
	if err != nil {
		return nil, because(ctx, err)
	}
	c := &connection{client: client, largest: largest}
	if err := c.identify(ctx, s.keys); err != nil {
		c.close()
		return nil, because(ctx, err)
	}
	return c, nil
}

// client is the configuration of the client library for one endpoint. The context
// is that of the login alone.
func (c *Config) client(ctx context.Context, e endpoint) clientv3.Config {
	options := []grpc.DialOption{grpc.WithChainUnaryInterceptor(failFast)}
	if c.TLS != nil && c.TLS.ServerName != "" {
		// The library verifies the name of the endpoint in any case.
		options = append(options, grpc.WithAuthority(c.TLS.ServerName))
	}
	if c.network != nil {
		options = append(options, grpc.WithContextDialer(c.network))
	}
	return clientv3.Config{
		Endpoints: []string{e.url(c.TLS != nil)}, TLS: c.TLS,
		Username: c.Username, Password: string(c.Password),
		Context: ctx,
		// One for the request, one after a token was renewed, and one spare.
		MaxUnaryRetries: 3,
		DialOptions:     options, Logger: zap.NewNop(),
	}
}

// failFast makes a request to an unreachable member fail at once, with the
// reason. The library would wait for the timeout, and not know the reason.
func failFast(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, request, reply, conn, append(options, grpc.WaitForReady(false))...)
}

// identify reads the cluster's id and revision, and the member's features.
func (c *connection) identify(ctx context.Context, keys keyRange) error {
	header, err := c.read(ctx, keys)
	if err != nil {
		return err
	}
	c.cluster, c.revision = header.GetClusterId(), uint64(header.GetRevision())
	status, err := etcdserverpb.NewMaintenanceClient(c.client.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return err
	}
	v, ok := parseVersion(status.GetVersion())
	if !ok || !v.supported() {
		return fmt.Errorf("it is etcd %.40q: want 3.4 or newer", status.GetVersion())
	}
	c.ordered = v.ordered()
	// Each revision took an entry of the cluster's log. If there are fewer of those, the store
	// was restored from a backup of another cluster, which may have the same id: what was
	// deleted there need not have been deleted here, and a position may be of either.
	c.recalls = keepsDeletes(status.GetVersion()) && status.GetRaftAppliedIndex() >= c.revision
	c.inUse = uint64(max(status.GetDbSizeInUse(), 1))
	return nil
}

// read reads the present revision of the cluster from its majority. It needs no
// permission beyond those of the watch.
func (c *connection) read(ctx context.Context, keys keyRange) (*etcdserverpb.ResponseHeader, error) {
	answer, err := c.client.Get(ctx, keys.start, clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	return answer.Header, nil
}

// check rejects an answer of another cluster than the one that was connected to.
func (c *connection) check(h *etcdserverpb.ResponseHeader) error {
	if id := h.GetClusterId(); id != 0 && id != c.cluster {
		return fmt.Errorf("%w: cluster id is %x, was %x", errReplaced, id, c.cluster)
	}
	return nil
}

func (c *connection) close() { _ = c.client.Close() }
