package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// reloadMetrics are the metrics of attempts to put a newer configuration into effect.
type reloadMetrics struct {
	succeeded, failed prometheus.Counter
	successful, at    prometheus.Gauge
}

// makeReloads makes the metrics of reloads. The start counts as a reload that succeeded now.
func (m *Metrics) makeReloads() {
	attempts := counterVec("config_reloads_total", "Attempts to put a newer configuration into effect while the process runs, by result: success, or failure, after which the old one is kept.", "result")
	m.reloads = reloadMetrics{
		succeeded: attempts.WithLabelValues("success"),
		failed:    attempts.WithLabelValues("failure"),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: Namespace + "config_last_reload_successful", Help: "1 if the configuration in effect is the newest one, as far as is known; 0 if the last attempt to reload it failed.",
		}),
		at: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: Namespace + "config_last_reload_success_timestamp_seconds", Help: "When the configuration in effect was loaded, in seconds since 1970.",
		}),
	}
	m.Registry.MustRegister(attempts, m.reloads.successful, m.reloads.at)
	m.reloads.successful.Set(1)
	m.reloads.at.Set(seconds(time.Now()))
}

// ConfigReloaded counts an attempt to put a newer configuration into effect.
func (m *Metrics) ConfigReloaded(at time.Time, success bool) {
	if !success {
		m.reloads.failed.Inc()
		m.reloads.successful.Set(0)
		return
	}
	m.reloads.succeeded.Inc()
	m.reloads.successful.Set(1)
	m.reloads.at.Set(seconds(at))
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
