package doctor

import (
	"testing"
	"testing/synctest"
)

// TestAllIsWell examines a gateway behind a proxy that does everything right.
func TestAllIsWell(t *testing.T) {
	for name, replicas := range map[string][]replica{"one replica": {{epoch: "e1", revision: 2}}, "two replicas": {{epoch: "e1", revision: 2}, {epoch: "e1", revision: 2}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWay(t)
				w.replicas = replicas
				w.serve()
				for _, f := range w.wantProblem("", "") {
					t.Log(f)
					if f.Result != OK {
						t.Errorf("%+v, want all to be well", f)
					}
				}
			})
		})
	}
}
