package docs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
)

// namedFiles returns a reader of the files that configurations in the
// documentation name: a certificate or a key, by the ending of the name, else a
// secret. They exist on the reader's machine, and not here.
func namedFiles(t *testing.T) func(name string) ([]byte, error) {
	t.Helper()
	certificate, key := selfSigned(t)
	return func(name string) ([]byte, error) {
		base := filepath.Base(name)
		switch ext := filepath.Ext(base); {
		case base == "new.key", base == "old.key":
			return []byte(access.NewSealKey()), nil
		case base == "tokens":
			return []byte("# none yet\n"), nil
		case ext == ".key", ext == ".pem" && strings.Contains(base, "key"):
			return key, nil
		case ext == ".pem", ext == ".crt":
			return certificate, nil
		}
		return []byte("secret\n"), nil
	}
}

// selfSigned returns a certificate and its key in PEM.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
