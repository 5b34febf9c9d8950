package postgres

import (
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(realserver.Main(m)) }
