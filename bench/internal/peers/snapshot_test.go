//go:build peers

package peers

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSnapshotsAreTheSame: the sendfile peer, the limit of snapshots, sends the
// same resources as the gateway.
func TestSnapshotsAreTheSame(t *testing.T) {
	limit, ours := upserts(t, sendfile()), upserts(t, gateway("shards"))
	if limit != ours || strings.Count(ours, "event: upsert\n") != testOptions(t).Resources {
		t.Errorf("the limit sends %q, the gateway %q", limit, ours)
	}
}

// upserts requests a snapshot, and omits everything but its resources.
func upserts(t *testing.T, p Peer) string {
	t.Helper()
	s := startPeer(t, p)
	defer s.Stop()
	c, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write(s.Snapshot); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if line := lines.Text(); line == "event: upsert" {
			out.WriteString(line + "\n")
		} else if strings.HasPrefix(line, `data: {"type":"upsert",`) {
			out.WriteString(line + "\n\n")
		}
	}
	return out.String()
}
