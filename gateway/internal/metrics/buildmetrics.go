package metrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// makeBuild exports what is running.
func (m *Metrics) makeBuild(version string) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: Namespace + "build_info", Help: "1, with the version of the program, the commit that it was built from and the version of Go in labels.",
	}, []string{"version", "revision", "goversion"})
	info.WithLabelValues(version, revision(), runtime.Version()).Set(1)
	m.Registry.MustRegister(info)
}

// revision returns the commit that the program was built from.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
