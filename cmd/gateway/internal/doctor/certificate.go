package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// renewBefore is how long before its end a certificate should have been renewed.
const renewBefore = 14 * 24 * time.Hour

// checkCertificate examines the certificates of the server as a browser does, and decides
// whether a token may be sent. The request that brings them has none. false: there is no
// connection.
func (e *Examination) checkCertificate(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	e.unverified, e.shared = true, nil
	e.shared = e.transport()
	a, err := e.do(within, request{path: "/healthz", anonymous: true})
	e.shared.CloseIdleConnections()
	if err != nil {
		e.unreachable(ctx, nil, err)
		return false
	}
	a.Close()
	e.unverified = e.verify(ctx, a.TLS) != nil
	e.shared = e.transport()
	return true
}

// verify reports what is wrong with the certificates of a connection.
func (e *Examination) verify(ctx context.Context, state *tls.ConnectionState) error {
	leaf := state.PeerCertificates[0] // a server always has one
	chain := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		chain.AddCert(c)
	}
	name := e.base.Hostname()
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: e.options.TLS.RootCAs, Intermediates: chain})
	if err != nil {
		found, mend := faultOf(leaf, len(state.PeerCertificates), err)
		e.problem(ctx, Certificate, mend, "%s", found)
		return err
	}
	end := leaf.NotAfter.UTC().Format(time.DateOnly)
	if time.Until(leaf.NotAfter) < renewBefore {
		e.problem(ctx, Certificate, "renew it; a gateway reads new files without a restart", "the certificate ends on %s", end)
		return nil // it still holds
	}
	e.ok(ctx, Certificate, "valid for %s until %s", name, end)
	return nil
}

// faultOf describes why a certificate is not accepted.
func faultOf(leaf *x509.Certificate, sent int, err error) (found, mend string) {
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &host):
		return "the certificate is for other names: " + shortened(err.Error()), "use one that has this name as a subject alternative name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(leaf.NotBefore):
		return "the certificate begins only on " + leaf.NotBefore.UTC().Format(time.DateTime), "see whether the clock of this machine is right"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate, or one of its chain, has expired; its own end is %s", leaf.NotAfter.UTC().Format(time.DateTime)), "renew it"
	case errors.As(err, &unknown) && bytes.Equal(leaf.RawIssuer, leaf.RawSubject):
		return "the certificate is signed by itself, so that browsers refuse it", "use one of an authority that browsers know"
	case errors.As(err, &unknown) && sent == 1:
		return fmt.Sprintf("the server sends one certificate, without those between it and an authority that this machine knows; it was issued by %q", shortened(leaf.Issuer.CommonName)), "put the certificates in between into the same file, after that of the server, or let this machine know the authority"
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate is from an authority that this machine does not know, %q", shortened(leaf.Issuer.CommonName)), "use one of an authority that browsers know, or let this machine know the authority"
	}
	return "the certificate is not accepted: " + shortened(err.Error()), "use one that browsers accept"
}
