package grpc

import (
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

func TestBadConfig(t *testing.T) {
	tests := map[string]struct {
		config Config
		want   string
	}{
		"no address":         {Config{Watch: "w"}, "no address: want one like dns:///backend:9000"},
		"malformed address":  {Config{Watch: "w", Address: "dns://a b:x/%"}, `address "dns://a b:x/%"`},
		"no watch":           {Config{Address: "a:1"}, `watch name ""`},
		"bad watch":          {Config{Address: "a:1", Watch: "a b"}, `watch name "a b"`},
		"prefix":             {Config{Address: "a:1", Watch: "w", Prefix: "\xff"}, `prefix "\xff": want UTF-8`},
		"keepalive":          {Config{Address: "a:1", Watch: "w", Keepalive: time.Second}, `keepalive "1s": want 10s or more`},
		"stall":              {Config{Address: "a:1", Watch: "w", StallAfter: -1}, "want 0 or more"},
		"message size":       {Config{Address: "a:1", Watch: "w", MaxMessageBytes: -1}, "want 0 or more"},
		"metadata":           {Config{Address: "a:1", Watch: "w", Metadata: adapter.Metadata{"grpc-timeout": {Text: "secret"}}}, `metadata key "grpc-timeout": want a name that gRPC does not reserve`},
		"token and metadata": {Config{Address: "a:1", Watch: "w", TokenFile: "f", Metadata: adapter.Metadata{"Authorization": {Text: "secret"}}}, "want one of them"},
		"pseudo header":      {Config{Address: "a:1", Watch: "w", Metadata: adapter.Metadata{":path": {Text: "secret"}}}, `metadata key ":path"`},
	}
	for name, test := range tests {
		_, err := New(test.config)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want %s", name, err, test.want)
		}
	}
}
