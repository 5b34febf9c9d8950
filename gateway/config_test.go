package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream/watch"
)

func TestConfigDefaults(t *testing.T) {
	c := Config{StreamSettings: StreamSettings{Heartbeat: time.Second, MaxAge: -1, Drain: -1}}.withDefaults()
	if c.Heartbeat != time.Second || c.MaxAge != -1 || c.Drain != -1 {
		t.Errorf("what was set changed: %+v", c)
	}
	if c.WriteTimeout != 10*time.Second || c.Retry != 1500*time.Millisecond || c.PrimeWait != 5*time.Second ||
		c.AheadWait != 3*time.Second || c.StaleAllowed != 5*time.Minute || c.Logger == nil || c.Version == "" {
		t.Errorf("defaults: %+v", c)
	}
}

func TestInvalidConfig(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{}, "Registry is missing"},
		{Config{Registry: registry, StreamSettings: StreamSettings{Heartbeat: -1}}, "Heartbeat is -1ns: want a positive duration"},
		{Config{Registry: registry, StreamSettings: StreamSettings{MaxSubscribers: -1}}, "MaxSubscribers is -1"},
		{Config{Registry: registry, Views: ViewLimits{MaxBytes: -1}}, "Views is {Max:0 MaxPerClient:0 MaxOrdersPerClient:0 MaxBytes:-1 Linger:0s MaxGroups:0}: want positive numbers"},
		{Config{Registry: registry, HTTPSettings: HTTPSettings{AllowedOrigins: []string{"*"}}}, `"*": want scheme://host`},
		{Config{Registry: registry, HTTPSettings: HTTPSettings{AllowedOrigins: []string{"null"}}}, `"null": want scheme://host`},
		{Config{Registry: registry, HTTPSettings: HTTPSettings{AllowedOrigins: []string{"https://a.example/"}}}, "want scheme://host"},
		{Config{Registry: registry, HTTPSettings: HTTPSettings{AllowedOrigins: []string{"https://a.example", "a.example"}}}, `"a.example"`},
		{Config{Registry: registry, HTTPSettings: HTTPSettings{AllowedHeaders: []string{"X-Tenant", "*"}}}, `AllowedHeaders: "*": want the name of a header`},
		{Config{Registry: registry, HTTPSettings: HTTPSettings{AllowedHeaders: []string{"X-Forwarded-For"}}}, `AllowedHeaders: "X-Forwarded-For"`},
	} {
		if _, err := New(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}
