package gateway

import (
	"context"
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/rpc"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream/store"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// callRig is a rig that also serves gRPC.
type callRig struct {
	*rig
	rpc *gatewaytest.Network
}

func newCallRig(t *testing.T, c Config, watches ...string) *callRig {
	t.Helper()
	r := &callRig{rig: newRig(t, c, watches...), rpc: gatewaytest.NewNetwork()}
	server := rpc.New(r.gateway.calls, nil, nil)
	served := make(chan error, 1)
	go func() {
		served <- rpc.Serve(server, netconn.Listen(r.rpc, r.gateway.now.Load().cfg.WriteTimeout, slog.New(slog.DiscardHandler)))
	}()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("gRPC server: %v", err)
		}
	})
	return r
}

// framed opens a gRPC connection.
func (r *callRig) framed(settings ...http2.Setting) *framed {
	r.t.Helper()
	c, err := r.rpc.Dial(context.Background(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	return newFramed(r.t, c, settings...)
}

// message returns a gRPC message that announces that many bytes.
func message(announced int, sent []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(announced)), sent...)
}

// begin begins a call with a message that may be incomplete.
func (f *framed) begin(method string, announced int, sent []byte, end bool) uint32 {
	f.t.Helper()
	id := f.call(method)
	if err := f.WriteData(id, end, message(announced, sent)); err != nil {
		f.t.Fatal(err)
	}
	return id
}

// request begins a call with a complete message.
func (f *framed) request(method string, m proto.Message) uint32 {
	f.t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.begin(method, len(raw), raw, true)
}

// TestAttackAnnouncedMessages makes calls that announce much and send little.
func TestAttackAnnouncedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCallRig(t, Config{HTTPSettings: HTTPSettings{BodyBudget: 4 << 20}}, "a")
		r.addStore("drafts", store.Config{MaxValueBytes: 1 << 20})
		before := heap()
		c := r.framed()
		var refused, held []uint32
		for range 96 {
			for _, method := range []string{"ListWatches", "GetResource", "WatchList", "PutResource"} {
				refused = append(refused, c.begin(method, 16<<20, make([]byte, 1<<10), false))
			}
			synctest.Wait()
		}
		for range 96 {
			held = append(held, c.begin("PutResource", 1<<20, make([]byte, 1<<10), false))
			synctest.Wait()
		}
		for _, id := range refused {
			if got := c.field(id, "grpc-status"); got != "8" {
				t.Fatalf("16 MiB announced, in any call: status %q %s", got, c.field(id, "grpc-message"))
			}
		}
		if taken, _ := r.gateway.now.Load().unary.Bodies.Bytes.Now(); taken != 1<<20 {
			t.Errorf("messages that are announced have %d KiB of the body budget, want the share of one client", taken>>10)
		}
		if grown := heap() - before; grown > 16<<20 {
			t.Errorf("calls that were never finished took %d MiB", grown>>20)
		}
		time.Sleep(rpc.Timeout + time.Second)
		synctest.Wait()
		late, busy := 0, 0
		for _, id := range held {
			switch c.field(id, "grpc-status") {
			case "4":
				late++
			case "14":
				busy++
			}
		}
		if late != 1 || busy != len(held)-1 {
			t.Errorf("of %d messages that did not arrive %d ended as late and %d found no room", len(held), late, busy)
		}
		if taken, _ := r.gateway.now.Load().unary.Bodies.Bytes.Now(); taken != 0 {
			t.Errorf("%d bytes of the body budget are still taken", taken)
		}
	})
}

// TestAttackTrickledMessages checks that a message that arrives byte by byte has a
// deadline.
func TestAttackTrickledMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCallRig(t, Config{})
		r.addStore("drafts", store.Config{})
		c := r.framed()
		id, began := c.begin("PutResource", 1<<20, nil, false), time.Now()
		for {
			if ended, _ := c.hasEnded(id); ended {
				break
			}
			time.Sleep(time.Second)
			if err := c.WriteData(id, false, make([]byte, rpc.ParcelPiece/4)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if took := time.Since(began); c.field(id, "grpc-status") != "4" || took < unary.BodyTimeout || took > unary.BodyTimeout+2*time.Second {
			t.Errorf("after %s: %s %s", took, c.field(id, "grpc-status"), c.field(id, "grpc-message"))
		}
	})
}

// TestAttackSilentConnections checks gRPC connections that send nothing, or an
// incomplete handshake, or open no call.
func TestAttackSilentConnections(t *testing.T) {
	for name, sent := range map[string]string{
		"nothing": "", "half a preface": http2.ClientPreface[:12], "no settings": http2.ClientPreface,
		"no call":      http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"half a frame": http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00",
		"half a head":  http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCallRig(t, Config{})
				c, err := r.rpc.Dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				began, closed := time.Now(), make(chan time.Duration, 1)
				go func() {
					for p := make([]byte, 4<<10); ; {
						if _, err := c.Read(p); err != nil {
							closed <- time.Since(began)
							return
						}
					}
				}()
				if _, err := c.Write([]byte(sent)); err != nil {
					t.Fatal(err)
				}
				if took := <-closed; took > rpc.Timeout+time.Second {
					t.Errorf("closed after %s", took)
				}
				c.Close()
			})
		})
	}
}

// TestCallsKeepAConnection checks that a connection that had a call does not count as
// silent.
func TestCallsKeepAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCallRig(t, Config{})
		c := r.framed()
		for range 5 {
			id := c.request("ListWatches", &api.ListWatchesRequest{})
			synctest.Wait()
			if got := c.field(id, "grpc-status"); got != "0" {
				t.Fatalf("status %q", got)
			}
			time.Sleep(2 * rpc.Timeout)
		}
		if c.isClosed() {
			t.Error("the connection was closed")
		}
	})
}

// TestAttackUnreadCalls leaves gRPC answers and a gRPC stream unread, over one
// connection whose client never opens the window.
func TestAttackUnreadCalls(t *testing.T) {
	for method, request := range map[string]proto.Message{
		"ListResources": &api.ListResourcesRequest{Watch: "a"},
		"WatchList":     &api.WatchListRequest{Watch: "a"},
		"GetResource":   &api.GetResourceRequest{Watch: "a", Key: "large"},
	} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const large = 1 << 20
				r := newCallRig(t, Config{HTTPSettings: HTTPSettings{AnswerBudget: 16 * large}}, "a")
				r.Prime("a", 1000, append(pages(large), gatewaytest.Resource("large", 1000, `"`+strings.Repeat("x", large)+`"`))...)
				before := heap()
				c := r.framed(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				for range netconn.MaxStreams {
					c.request(method, request)
				}
				if taken := r.answersTaken(); taken < large || taken > 4*large {
					t.Errorf("unread messages have %d KiB, of %d at most", taken>>10, 4*large>>10)
				}
				if grown := heap() - before; grown > 48<<20 {
					t.Errorf("%d unread calls took %d MiB", netconn.MaxStreams, grown>>20)
				}
				time.Sleep(2*limits.AnswerWait + netconn.RateWindow + time.Second)
				if taken := r.answersTaken(); taken != 0 || !c.isClosed() {
					t.Errorf("in the end, %d KiB are taken; closed: %t", taken>>10, c.isClosed())
				}
			})
		})
	}
}

// TestMessages checks that a complete message is accepted however it is split, and
// that invalid ones are refused.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCallRig(t, Config{})
		r.addStore("drafts", store.Config{})
		c := r.framed()
		put, err := proto.Marshal(&api.PutResourceRequest{Watch: "drafts", Key: "k", Value: []byte(`"` + strings.Repeat("x", 40<<10) + `"`)})
		if err != nil {
			t.Fatal(err)
		}
		whole := message(len(put), put)
		id := c.call("PutResource")
		for len(whole) > 0 {
			n := min(len(whole), 7001)
			if err := c.WriteData(id, n == len(whole), whole[:n]); err != nil {
				t.Fatal(err)
			}
			whole = whole[n:]
			time.Sleep(time.Second)
		}
		invalid, unimplemented := codes.InvalidArgument, codes.Unimplemented
		compressed := c.call("GetWatch")
		_ = c.WriteData(compressed, true, []byte{1, 0, 0, 0, 0})
		none := c.call("GetWatch")
		_ = c.WriteData(none, true, nil)
		noneOfStream := c.call("WatchList")
		_ = c.WriteData(noneOfStream, true, nil)
		for what, call := range map[string]struct {
			id   uint32
			want codes.Code
		}{
			"a value in pieces":         {id, codes.OK},
			"compressed":                {compressed, unimplemented},
			"no message":                {none, invalid},
			"no message, for a stream":  {noneOfStream, invalid},
			"broken off":                {c.begin("GetWatch", 5, []byte{1}, true), invalid},
			"broken off, for a stream":  {c.begin("WatchList", 5, []byte{1}, true), invalid},
			"no protobuf":               {c.begin("GetWatch", 2, []byte{0xff, 0xff}, true), invalid},
			"no protobuf, for a stream": {c.begin("WatchList", 2, []byte{0xff, 0xff}, true), invalid},
		} {
			synctest.Wait()
			if got := c.field(call.id, "grpc-status"); got != string('0'+rune(call.want)) && !(call.want == unimplemented && got == "12") {
				t.Errorf("%s: status %q %q", what, got, c.field(call.id, "grpc-message"))
			}
		}
		if taken, _ := r.gateway.now.Load().unary.Bodies.Bytes.Now(); taken != 0 {
			t.Errorf("%d bytes of the body budget are still taken", taken)
		}
	})
}
