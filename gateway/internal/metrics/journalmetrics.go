package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/stream/watch"
)

// journalCollector reads how the journal is at each scrape.
type journalCollector struct {
	now func() watch.JournalStats
}

var (
	descJournalFile    = desc("journal_file_bytes", "Size of the file of the journal.")
	descJournalFree    = desc("journal_free_bytes", "Bytes of the file of the journal that are free. The file is rewritten each day, and at a start if they are more than half.")
	descJournalCommits = desc("journal_commits_total", "Transactions of the file of the journal.")
	descJournalSeconds = desc("journal_commit_seconds_total", "Time that the transactions of the file of the journal have taken, most of it waiting for the disk.")
	descJournalChanges = desc("journal_changes_total", "Changes that were written to the journal.")
	descJournalBehind  = desc("journal_behind_seconds", "How old the oldest commit is that is not in the journal yet.")
	descJournalFailed  = desc("journal_failed", "1 if nothing is written to the journal until a restart, since it could not be opened, or a write to its disk has failed; else 0.")
)

// Describe implements prometheus.Collector.
func (c journalCollector) Describe(out chan<- *prometheus.Desc) {
	describe(out, descJournalFile, descJournalFree, descJournalCommits, descJournalSeconds, descJournalChanges, descJournalBehind, descJournalFailed)
}

// Collect implements prometheus.Collector.
func (c journalCollector) Collect(out chan<- prometheus.Metric) {
	if c.now == nil {
		return
	}
	s, failed := c.now(), 0.0
	if s.Failed {
		failed = 1
	}
	gauge(out, descJournalFile, float64(s.FileBytes))
	gauge(out, descJournalFree, float64(s.FreeBytes))
	counter(out, descJournalCommits, s.Commits)
	counter(out, descJournalChanges, s.Written)
	out <- prometheus.MustNewConstMetric(descJournalSeconds, prometheus.CounterValue, s.Waited.Seconds())
	gauge(out, descJournalBehind, s.Behind.Seconds())
	gauge(out, descJournalFailed, failed)
}

// WatchJournal exports how the journal is. now returns that; nil: there is none.
func (m *Metrics) WatchJournal(now func() watch.JournalStats) {
	m.Registry.MustRegister(journalCollector{now})
}
