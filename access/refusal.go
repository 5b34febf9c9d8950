package access

import (
	"net/http"
	"strconv"
	"time"
)

// Reason is a short, stable word for why a credential is not accepted. It may be a
// label of a metric.
type Reason string

// The reasons, and the status of each.
const (
	CredentialRequired  Reason = "credential_required"  // 401: there is none that a session or a ticket could be made with
	CredentialMissing   Reason = "credential_missing"   // 401: there is none, and the watch cannot be seen without one, or does not exist, or the write is not allowed without one
	InvalidRequest      Reason = "invalid_request"      // 401: the credential is malformed
	InvalidToken        Reason = "invalid_token"        // 401: nobody issued it, or it is not for this gateway
	TokenExpired        Reason = "token_expired"        // 401: it was valid
	TokenNotYetValid    Reason = "token_not_yet_valid"  // 401: it will be valid
	UnknownIssuer       Reason = "unknown_issuer"       // 401: its issuer is not in the configuration
	UnknownKey          Reason = "unknown_key"          // 401: its issuer has no such key
	Revoked             Reason = "revoked"              // 401: an operator has revoked it, or its owner has signed out
	PlainText           Reason = "plain_text"           // 403: it came without TLS, from another machine
	TooManyFailures     Reason = "too_many_failures"    // 429: its address has failed too often
	KeySetUnavailable   Reason = "key_set_unavailable"  // 503: the keys of its issuer are not known now
	ReviewUnavailable   Reason = "review_unavailable"   // 503: the cluster that knows whose it is does not answer now
	RevocationsUnknown  Reason = "revocations_unknown"  // 503: whether it is revoked is not known yet
	CredentialTooLarge  Reason = "credential_too_large" // 400: it does not fit into a cookie or a ticket
	CredentialNotUsable Reason = "credential_unusable"  // 403: it is valid, but not for this
	LoginRefused        Reason = "login_refused"        // 401: a sign-in did not end as it began, or the provider refused it
	ProviderUnavailable Reason = "provider_unavailable" // 503: the provider cannot sign anybody in
)

// Reasons are all of them, for metrics.
var Reasons = [...]Reason{
	CredentialRequired, CredentialMissing, InvalidRequest, InvalidToken, TokenExpired, TokenNotYetValid, UnknownIssuer, UnknownKey, Revoked, PlainText,
	TooManyFailures, KeySetUnavailable, ReviewUnavailable, RevocationsUnknown, CredentialTooLarge, CredentialNotUsable, LoginRefused, ProviderUnavailable,
}

// Status returns the status of the answer over HTTP.
func (r Reason) Status() int {
	switch r {
	case PlainText, CredentialNotUsable:
		return http.StatusForbidden
	case TooManyFailures:
		return http.StatusTooManyRequests
	case KeySetUnavailable, ReviewUnavailable, RevocationsUnknown, ProviderUnavailable:
		return http.StatusServiceUnavailable
	case CredentialTooLarge:
		return http.StatusBadRequest
	}
	return http.StatusUnauthorized
}

// Refusal says why a credential is not accepted. Its texts never contain a part of the
// credential: they are fixed, or come from the configuration.
//
// Static after construction.
type Refusal struct {
	// Status is the status of the answer over HTTP.
	Status int
	// Reason is a short word.
	Reason Reason
	// Text says what is wrong, and what would be right.
	Text string
	// Challenge is the value of WWW-Authenticate; empty unless the status is 401.
	Challenge string
	// RetryAfter is how long the client should wait; zero: the answer will not change.
	RetryAfter time.Duration
	// Expired is the principal of a genuine credential that expired less than GracePeriod ago;
	// nil: there is another reason. An EventSource gives up after a 401, so it should get
	// another answer then.
	Expired *Principal
}

// GracePeriod is how long an expired credential is told from an invalid one.
const GracePeriod = time.Hour

// NewRefusal returns the error for a reason.
func NewRefusal(reason Reason, text string) *Refusal {
	e := &Refusal{Status: reason.Status(), Reason: reason, Text: text}
	if e.Status == http.StatusUnauthorized {
		e.Challenge = challenge(reason, text)
	}
	return e
}

// Later returns the error for a reason that goes away after some time.
func Later(reason Reason, text string, after time.Duration) *Refusal {
	e := NewRefusal(reason, text)
	e.RetryAfter = max(after, time.Second)
	return e
}

// Expiry returns the error for the genuine credential of p, which has expired.
func Expiry(p *Principal, at, now time.Time) *Refusal {
	e := NewRefusal(TokenExpired, "the credential has expired: get a new one")
	if now.Before(at.Add(GracePeriod)) {
		e.Expired = p
	}
	return e
}

// Error returns the text.
func (e *Refusal) Error() string { return e.Text }

// bearer is the challenge to a client without a credential (RFC 6750, section 3).
const bearer = `Bearer realm="watchtide"`

// challenge returns the challenge to a client with a wrong credential.
func challenge(reason Reason, text string) string {
	kind := "invalid_token"
	switch reason {
	case CredentialRequired, CredentialMissing:
		return bearer
	case InvalidRequest:
		kind = "invalid_request"
	}
	return bearer + `, error="` + kind + `", error_description=` + strconv.QuoteToASCII(text)
}
