package jwt

import "time"

// Unverified is what a token says of itself. Nothing of it has been verified.
type Unverified struct {
	Issuer string
	// Expires is the claim exp; zero: there is none.
	Expires time.Time

	claims map[string]any
}

// Peek reads a token without verifying it: for those that somebody else verifies. The error is a
// *access.Refusal: the text is no JWT, its times are none, or it is not valid yet.
func Peek(token string, now time.Time) (*Unverified, error) {
	u, err := parse(token)
	if err != nil {
		return nil, err
	}
	out := &Unverified{claims: u.claims}
	out.Issuer, _ = u.claims["iss"].(string)
	if _, given := u.claims["exp"]; given {
		if out.Expires, err = times(u.claims, now); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// IsFor reports whether the token is for an audience.
func (u *Unverified) IsFor(audience string) bool { return isFor(u.claims, audience) }

// HasAudience reports whether the token says whom it is for.
func (u *Unverified) HasAudience() bool { return u.claims["aud"] != nil }

// IsOf reports whether one of the issuers of the verifier has issued a token, as far as the token says.
func (v *Verifier) IsOf(u *Unverified) bool { return v.issuers[u.Issuer] != nil }
