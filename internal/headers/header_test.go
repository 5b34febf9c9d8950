package headers

import "testing"

func TestPageHeaders(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Tenant": true, "x-tenant": true, "sentry-trace": true, "X-Requested-With": true, "X-Datadog-Trace-Id": true, "Secret": true,
		"": false, "*": false, "X Tenant": false, "X-Tenant, Y": false, "X-Tenant:": false, "X-Ten\nant": false, "Ä": false,
		"Cookie": false, "host": false, "ORIGIN": false, "Sec-Fetch-Site": false, "proxy-authorization": false,
		"X-Forwarded-For": false, "x-forwarded-anything": false, "forwarded": false, "X-Real-IP": false, "Via": false, "True-Client-IP": false,
	} {
		if got := IsPageHeader(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}
