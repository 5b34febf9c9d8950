package authz

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
)

// TestEndsAreRecorded, each once: a credential that has ended, and one that was revoked. A
// stream that its client leaves has no line.
func TestEndsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		table := NewTable()
		table.Audit = access.NewAuditLog()
		table.Audit.SetOutput(&out)
		left := table.Enter(holder("left", "", time.Hour))
		expired := table.Enter(holder("expired", "", time.Minute))
		revoked := table.Enter(holder("revoked", "s", time.Minute))
		table.Leave(left)
		table.Revoke("session/s")
		table.Revoke("session/s")
		time.Sleep(time.Minute)
		table.Leave(expired)
		table.Leave(revoked)
		table.Audit.Close(time.Second)
		want := []string{`"decision":"ended","action":"revoke",`, `"name":"revoked"`, `"stream":"` + revoked.ID(), `"decision":"ended","action":"expire",`, `"name":"expired"`, `"stream":"` + expired.ID()}
		rest := out.String()
		for _, part := range want {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Fatalf("no %s in\n%s", part, rest)
			}
			rest = after
		}
		if n := strings.Count(out.String(), "\n"); n != 2 {
			t.Errorf("%d lines: %s", n, out.String())
		}
	})
}

// TestManyEndsAtOnce: a reload or a revocation that ends very many streams loses no line.
func TestManyEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		table := NewTable()
		table.Audit = access.NewAuditLog()
		table.Audit.SetOutput(&out)
		const many = 20_000
		for i := range many {
			table.Enter(holder(fmt.Sprint("n", i), "s", time.Hour))
		}
		table.Revoke("session/s")
		table.Audit.Close(time.Minute)
		if n, lost := strings.Count(out.String(), "\n"), table.Audit.Dropped(); n != many || lost != 0 {
			t.Errorf("%d lines, %d lost", n, lost)
		}
	})
}
