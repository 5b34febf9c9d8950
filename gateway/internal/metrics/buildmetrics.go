package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// makeBuild exports what is running.
func (m *Metrics) makeBuild(version, commit string) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: Namespace + "build_info", Help: "1, with the version of the program, the commit that it was built from and the version of Go in labels.",
	}, []string{"version", "revision", "goversion"})
	info.WithLabelValues(version, commit, runtime.Version()).Set(1)
	m.Registry.MustRegister(info)
}
