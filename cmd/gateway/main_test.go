package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// asChild makes the test binary look at the authorities that a machine without files of them has.
const asChild = "WATCHTIDE_TEST_AUTHORITIES"

// TestAuthoritiesAreCompiledIn: the image has no file of certificate authorities.
func TestAuthoritiesAreCompiledIn(t *testing.T) {
	if os.Getenv(asChild) != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			t.Fatal(err)
		}
		if pool.Equal(x509.NewCertPool()) {
			t.Fatal("there are no authorities")
		}
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = []string{asChild + "=1", "SSL_CERT_FILE=/does/not/exist", "SSL_CERT_DIR=/does/not/exist"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("without the system's files: %v\n%s", err, out)
	}
}
