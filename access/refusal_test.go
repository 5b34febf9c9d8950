package access

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestOnly401HasAChallenge: a browser and a library act on it (RFC 9110, section 11.6.1).
func TestOnly401HasAChallenge(t *testing.T) {
	for _, reason := range Reasons {
		e := NewRefusal(reason, "why")
		if (e.Challenge != "") != (e.Status == http.StatusUnauthorized) {
			t.Errorf("%s: status %d with the challenge %q", reason, e.Status, e.Challenge)
		}
		if e.Error() != "why" || e.RetryAfter != 0 || e.Expired != nil {
			t.Errorf("%s: %+v", reason, e)
		}
	}
	if got, want := NewRefusal(InvalidToken, "a\"b").Challenge, `Bearer realm="watchtide", error="invalid_token", error_description="a\"b"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := NewRefusal(CredentialRequired, "x").Challenge; got != `Bearer realm="watchtide"` {
		t.Errorf("got %s", got)
	}
	if got := NewRefusal(InvalidRequest, "x").Challenge; !strings.Contains(got, `error="invalid_request"`) {
		t.Errorf("got %s", got)
	}
}

// TestExpiredWithinTheHour is told apart, and later is like any other.
func TestExpiredWithinTheHour(t *testing.T) {
	p, at := &Principal{Name: "a"}, time.Unix(1e9, 0)
	if e := Expiry(p, at, at.Add(GracePeriod-1)); e.Expired != p || e.Status != 401 || e.Reason != TokenExpired {
		t.Errorf("just in time: %+v", e)
	}
	if e := Expiry(p, at, at.Add(GracePeriod)); e.Expired != nil {
		t.Errorf("too late: %+v", e)
	}
}

func TestLaterSaysWhen(t *testing.T) {
	if e := Later(KeySetUnavailable, "x", time.Millisecond); e.RetryAfter != time.Second || e.Status != 503 {
		t.Errorf("%+v", e)
	}
}
