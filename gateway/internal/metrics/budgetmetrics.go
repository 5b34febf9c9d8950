package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/gateway/internal/limits"
)

// WatchBudgets exports how much of the budgets for bodies and answers is taken.
func (m *Metrics) WatchBudgets(bodies, answers *limits.Budget) {
	refused := counterVec("budget_refusals_total",
		"Requests that were answered with 503 because a budget was used up: bodies (of writes), answers (to lists, reads and long polls).", "budget")
	m.bodiesRefused, m.answersRefused = refused.WithLabelValues("bodies"), refused.WithLabelValues("answers")
	m.Registry.MustRegister(refused,
		budgetGauge("body_bytes", "Used bytes of the body budget.", func() float64 { taken, _ := bodies.Now(); return float64(taken) }),
		budgetGauge("answer_bytes", "Used bytes of the answer budget.", func() float64 { taken, _ := answers.Now(); return float64(taken) }),
		budgetGauge("answers_waiting", "Requests that are waiting for room for their answer.", func() float64 { _, waiting := answers.Now(); return float64(waiting) }))
}

func budgetGauge(name, help string, read func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: Namespace + name, Help: help}, read)
}

// BodyRefused counts a body that found no room.
func (m *Metrics) BodyRefused() { m.bodiesRefused.Inc() }

// AnswerRefused counts an answer that found no room.
func (m *Metrics) AnswerRefused() { m.answersRefused.Inc() }
