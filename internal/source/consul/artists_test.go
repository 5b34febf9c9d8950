//go:build servers

package consul

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// artists writes resources of a private type to a Consul: its messages are
// built by hand, with a text as the name of the artist.
type artists struct {
	client pbresource.ResourceServiceClient
	typ    *pbresource.Type
	token  string
	newest uint64 // newest version seen so far; only where faults are injected
}

// artistsAt writes to a server, bypassing the code under test.
func artistsAt(t *testing.T, address string) *artists {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	typ, err := ParseType(artistType)
	if err != nil {
		t.Fatal(err)
	}
	return &artists{client: pbresource.NewResourceServiceClient(conn), typ: typ}
}

func (a *artists) id(key string) *pbresource.ID {
	return &pbresource.ID{Name: key[strings.LastIndexByte(key, '/')+1:], Type: a.typ, Tenancy: &pbresource.Tenancy{}}
}

// put creates or replaces a resource, by its name or its key.
func (a *artists) put(ctx context.Context, key, text string) (*pbresource.Resource, error) {
	for {
		answer, err := a.client.Write(withToken(ctx, a.token), &pbresource.WriteRequest{Resource: &pbresource.Resource{
			Id: a.id(key), Data: &anypb.Any{TypeUrl: artistURL, Value: artistBytes(text)},
		}})
		if status.Code(err) != codes.Aborted { // a concurrent write came first
			return answer.GetResource(), err
		}
	}
}

func (a *artists) delete(ctx context.Context, key string) error {
	_, err := a.client.Delete(withToken(ctx, a.token), &pbresource.DeleteRequest{Id: a.id(key)})
	return err
}

// list reads the resources with Consul's strongest consistency.
func (a *artists) list(ctx context.Context, prefix string) ([]*pbresource.Resource, error) {
	answer, err := a.client.List(consistent(withToken(ctx, a.token)), &pbresource.ListRequest{
		Type: a.typ, Tenancy: &pbresource.Tenancy{}, NamePrefix: prefix,
	}, grpc.MaxCallRecvMsgSize(DefaultMaxMessageBytes))
	return answer.GetResources(), err
}

func (a *artists) mustPut(t *testing.T, key, text string) *pbresource.Resource {
	t.Helper()
	r, err := a.put(t.Context(), key, text)
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return r
}

func (a *artists) mustDelete(t *testing.T, key string) {
	t.Helper()
	if err := a.delete(t.Context(), key); err != nil {
		t.Fatalf("delete %s: %v", key, err)
	}
}

// textOf returns the artist's name from a delivered value.
func textOf(value []byte) (string, error) {
	var r struct {
		Data struct {
			Type  string `json:"@type"`
			Value string
		}
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return "", err
	}
	raw, err := base64.StdEncoding.DecodeString(r.Data.Value)
	if err != nil {
		return "", err
	}
	_, _, n := protowire.ConsumeTag(raw)
	if r.Data.Type != artistURL || n < 0 {
		return "", fmt.Errorf("no artist in %s", value)
	}
	text, n := protowire.ConsumeString(raw[n:])
	return text, protowire.ParseError(min(n, 0))
}

// texts is a source whose values are only the names.
type texts struct{ *Source }

func (s texts) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	return s.Source.Watch(ctx, resume, textSink{sink})
}

type textSink struct{ stream.Sink }

func (s textSink) Upsert(r stream.Resource) error {
	text, err := textOf(r.Value)
	if err != nil {
		return err
	}
	r.Value = []byte(text)
	return s.Sink.Upsert(r)
}

// all returns the events so far.
func (w *watched) all() []stream.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// deleted returns the keys of all deletes.
func (w *watched) deleted() (keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Type == stream.Delete {
			keys = append(keys, e.Resource.Key)
		}
	}
	return keys
}

// holds waits until the subscriber holds a text under a key; "": nothing.
func (w *watched) holds(name, text string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%q of %s", text, name), func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := w.state[inDefault+name].Value; got != text {
			return fmt.Errorf("there is %q; the status is %v: %s", got, w.Status().State, w.Status().Full())
		}
		return nil
	})
}
