package shard

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// The encoder of zstd has a channel, which bubbles of synctest can share only if none of them has made it.
func init() { wire.Zstd.Compress([][]byte{make([]byte, 64<<10)}) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
