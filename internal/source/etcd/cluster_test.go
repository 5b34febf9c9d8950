//go:build servers

package etcd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// clusterMember is one member of a cluster.
type clusterMember struct {
	*server
	index int
}

// startCluster starts a cluster whose members wait for each other.
func startCluster(t *testing.T, n int) []clusterMember {
	t.Helper()
	var peers, all []string
	for i := range n {
		peers = append(peers, realserver.FreeAddress(t))
		all = append(all, fmt.Sprintf("m%d=http://%s", i, peers[i]))
	}
	realserver.Build(t, "etcd") // a failure ends the test, which only its own goroutine may do
	members := make([]clusterMember, n)
	var starting sync.WaitGroup
	for i := range n {
		address := realserver.FreeAddress(t)
		starting.Go(func() {
			members[i] = clusterMember{startServer(t, "-listen", address, "-name", fmt.Sprint("m", i), "-peer", peers[i], "-cluster", strings.Join(all, ",")), i}
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	members[0].serving()
	return members
}

func addresses(members []clusterMember) (out []string) {
	for _, m := range members {
		out = append(out, m.Addr())
	}
	return out
}

// removeMember removes a member from the cluster, which then exits by itself.
func (m clusterMember) removeMember(other clusterMember) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	all, err := m.client.MemberList(ctx)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, one := range all.Members {
		if one.Name == fmt.Sprint("m", other.index) {
			if _, err := m.client.MemberRemove(ctx, one.ID); err != nil {
				m.t.Fatal(err)
			}
			return
		}
	}
	m.t.Fatalf("there is no member m%d", other.index)
}
