package etcd

import (
	"testing"

	"github.com/watchtide/watchtide/stream/streamtest/realserver"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(realserver.Main(m)) }
