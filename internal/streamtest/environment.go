package streamtest

import (
	"os"
	"os/exec"
	"testing"
)

// InEnvironment runs a test in a process that has further environment variables, such as
// HTTPS_PROXY=…, which net/http reads once. It returns true in that process, where the test is to go
// on, and false here.
func InEnvironment(t *testing.T, variables ...string) bool {
	t.Helper()
	const marker = "WATCHTIDE_TEST_IN_ENVIRONMENT"
	if os.Getenv(marker) == t.Name() {
		return true
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(append(os.Environ(), "NO_PROXY=", "no_proxy="), append(variables, marker+"="+t.Name())...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("in the environment %v: %v\n%s", variables, err, out)
	}
	return false
}
