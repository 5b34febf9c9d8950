package kubernetes

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/stream/streamtest/realserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(realserver.Main(m)) }
