//go:build servers

package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestServiceIsHardened: systemd rates the exposure of the service at most 2.0, of 10.
func TestServiceIsHardened(t *testing.T) {
	systemd, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: apt-get install systemd")
	}
	const service = "systemd/watchtide.service"
	rate := func(name string) ([]byte, error) {
		return exec.CommandContext(t.Context(), systemd, "security", "--offline=true", "--no-pager", "--threshold=20", name).CombinedOutput()
	}
	if out, err := rate(service); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	// The rating can fail: a service without any hardening.
	open := filepath.Join(t.TempDir(), "open.service")
	if err := os.WriteFile(open, []byte("[Service]\nExecStart=/bin/true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := rate(open); err == nil {
		t.Errorf("a service that is not hardened passes:\n%s", out)
	}
}
