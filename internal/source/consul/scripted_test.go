package consul

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fault is one way in which a server is wrong or hostile.
type fault struct {
	name    string
	server  *fake
	want    error  // the class of the error; nil: any
	outcome string // in the text of the error
}

// speaks sends events at the start, and is silent then.
func speaks(events string) func(int, watchStream) error {
	return func(_ int, out watchStream) error {
		tell(out, events)
		return hold(out)
	}
}

// speaksLater sends events once there is a first state.
func speaksLater(events string) func(int, watchStream) error {
	return func(_ int, out watchStream) error {
		tell(out, "+a@5 .")
		time.Sleep(time.Second)
		tell(out, events)
		return hold(out)
	}
}

func scriptedFaults() []fault {
	long := strings.Repeat("long-name-", 100_000)
	return []fault{
		{"a version that is no number", &fake{list: always("a@x"), watch: speaks(".")}, stream.ErrInvalid, "the version a number"},
		{"version 0", &fake{list: always("a@0"), watch: speaks(".")}, stream.ErrInvalid, "the version a number"},
		{"an empty event", &fake{list: always(""), watch: func(_ int, out watchStream) error {
			_ = out.Send(&pbresource.WatchEvent{Event: &pbresource.WatchEvent_Upsert_{Upsert: &pbresource.WatchEvent_Upsert{}}})
			return hold(out)
		}}, stream.ErrInvalid, "want all three"},
		{"an older change of another key", &fake{list: always("a@5 b@6"), watch: speaksLater("+a@9 +c@7")}, stream.ErrBehind, `key "default/default/c" is at version 7`},
		{"a list that the watch never reaches", &fake{watch: speaks("+a@5 ."), list: func(n int) ([]*pbresource.Resource, error) {
			if n == 1 {
				return several("a@5"), nil
			}
			return several("a@5 b@9"), nil
		}}, stream.ErrStalled, "a list shows version 9"},
		{"a server that hangs", &fake{list: always("a@5"), watch: speaks("+a@5 ."), probe: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}, stream.ErrStalled, "no answer to a small read"},
		{"a long key with a wrong version", &fake{list: always(long + "@x"), watch: speaks(".")}, stream.ErrInvalid, "long-name-long-name"},
		{"an error with a long text", &fake{list: func(int) ([]*pbresource.Resource, error) {
			return nil, status.Error(codes.InvalidArgument, strings.Repeat("a long text, ", 400))
		}, watch: speaks(".")}, nil, "a long text, a long text"},
	}
}

// TestScriptedFaults: a server that breaks the protocol is left with an error that says how.
func TestScriptedFaults(t *testing.T) {
	for _, row := range scriptedFaults() {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, row.server, Config{}, func(t *testing.T, watch func() *running) {
				r := watch()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				select {
				case <-r.ended:
				default:
					t.Fatalf("it goes on: %s", r.take())
				}
				if r.err == nil || row.want != nil && !errors.Is(r.err, row.want) || !strings.Contains(r.err.Error(), row.outcome) {
					t.Errorf("error %.300v, want one that is %v and has %q", r.err, row.want, row.outcome)
				}
				if n := row.server.called("list"); n > 10 {
					t.Errorf("%d lists", n)
				}
			})
			t.Logf(" scripted | consul | %s | refused: %s |", row.name, row.outcome)
		})
	}
}

// TestTooLargeIsRecognised: the error of a list that is too large for the watch keeps its class.
func TestTooLargeIsRecognised(t *testing.T) {
	c := Config{Address: "consul:8502", Resources: Resources{Type: artistType}}
	err := c.failed(status.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 1)"), "")
	if !adapter.TooLarge(err) {
		t.Errorf("%v is not recognised", err)
	}
}
