package gateway

import "github.com/prometheus/client_golang/prometheus"

// watchBudgets exports how much of the budgets for bodies and answers is taken.
func (m *metrics) watchBudgets(bodies, answers *budget) {
	refused := counterVec("budget_refusals_total",
		"Requests that were answered with 503 since a budget had no room: bodies (of writes), answers (to lists, reads and long polls).", "budget")
	m.bodiesRefused, m.answersRefused = refused.WithLabelValues("bodies"), refused.WithLabelValues("answers")
	m.registry.MustRegister(refused,
		budgetGauge("body_bytes", "How much of the body budget is taken.", bodies.bytes),
		budgetGauge("answer_bytes", "How much of the answer budget is taken.", answers.bytes),
		budgetGauge("answers_waiting", "Requests that wait for room for their answer.", answers.claims))
}

func budgetGauge(name, help string, read func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: namespace + name, Help: help}, read)
}

// bytes returns the number of bytes taken.
func (b *budget) bytes() float64 {
	taken, _ := b.now()
	return float64(taken)
}

// claims returns the number of claims that wait.
func (b *budget) claims() float64 {
	_, waiting := b.now()
	return float64(waiting)
}

// bodyRefused counts a body that found no room.
func (m *metrics) bodyRefused() { m.bodiesRefused.Inc() }

// answerRefused counts an answer that found no room.
func (m *metrics) answerRefused() { m.answersRefused.Inc() }
