package introspection

import (
	"errors"
	"time"
	"unicode/utf8"
)

// Instance is what a replica says of itself to operators.
type Instance struct {
	Instance string    `json:"instance"`
	Host     string    `json:"host,omitempty"` // empty: not known, or of an older replica
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Uptime   float64   `json:"uptime_seconds"`
	Ready    bool      `json:"ready"`
	// Reasons say why it is not ready, or what else is wrong.
	Reasons []string       `json:"reasons"`
	Limits  []Limit        `json:"limits"`
	Watches []SiblingWatch `json:"watches"`
}

// Limit is how much of something is in use.
type Limit struct {
	Name string `json:"name"`
	Used int64  `json:"used"`
	Most int64  `json:"most,omitempty"` // 0: there is no limit
	Unit string `json:"unit"`           // "" or "bytes"
	// Waiting is how many wait for some of it.
	Waiting int `json:"waiting,omitempty"`
}

// SiblingWatch is how far the replica is with a watch.
type SiblingWatch struct {
	Name     string    `json:"name"`
	Epoch    string    `json:"epoch"`
	Revision uint64    `json:"revision,string"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason,omitempty"`
	Memory   *Memory   `json:"memory,omitempty"` // nil: an older replica does not say it
}

// Memory is what a watch holds, in bytes, and its own ceiling.
type Memory struct {
	Used int64 `json:"used"`
	Most int64 `json:"most,omitempty"` // 0: there is no ceiling
	// Served is what is served, and not superseded. A watch that needs more than MostServed becomes
	// stale.
	Served     int64 `json:"served"`
	MostServed int64 `json:"most_served,omitempty"`
}

// Ceiling is a memory.Ceiling.
type Ceiling interface {
	Held() int64
	Bytes() int64
	Logs() int64
	MostLogs() int64
}

// MemoryOf returns what is held under a ceiling.
func MemoryOf(c Ceiling) *Memory {
	return &Memory{Used: c.Held(), Most: c.Bytes(), Served: c.Logs(), MostServed: c.MostLogs()}
}

// The most of each that is believed.
const (
	maxReasons = 1000
	maxLimits  = 100
	maxWatches = 10_000
	maxText    = 2000
)

// check refuses what no replica says.
func (i *Instance) check() error {
	texts := append([]string{i.Instance, i.Host, i.Version}, i.Reasons...)
	for _, l := range i.Limits {
		texts = append(texts, l.Name, l.Unit)
	}
	for _, w := range i.Watches {
		texts = append(texts, w.Name, w.Epoch, w.State, w.Reason)
	}
	if i.Instance == "" || len(i.Reasons) > maxReasons || len(i.Limits) > maxLimits || len(i.Watches) > maxWatches {
		return errors.New("it is not an instance")
	}
	for _, text := range texts {
		if len(text) > maxText || !utf8.ValidString(text) {
			return errors.New("a text is too long or not UTF-8")
		}
	}
	return nil
}
