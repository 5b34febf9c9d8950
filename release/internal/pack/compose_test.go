package pack

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// TestComposeFileIsRead by the loader of Docker Compose, which checks it against the schema.
func TestComposeFileIsRead(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{deploy + "compose.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := project.Services["watchtide"]
	if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || s.StopGracePeriod == nil || len(s.Configs) != 1 || s.Configs[0].Target != s.Command[2] {
		t.Errorf("the gateway is %+v: want a read-only file system, no capabilities, a grace period, and the configuration that it is told to read", s)
	}
	for _, p := range s.Ports {
		if p.HostIP != "127.0.0.1" {
			t.Errorf("port %d is reachable by other machines: the gateway asks nobody for credentials", p.Target)
		}
	}
}
