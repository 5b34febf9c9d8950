package main

import (
	"fmt"
	"strings"
	"time"
)

var (
	teams  = []string{"checkout", "payments", "search", "identity", "catalogue", "shipping", "billing", "support"}
	kinds  = []string{"api", "worker", "cache", "proxy", "scheduler", "exporter"}
	zones  = []string{"eu-west-1a", "eu-west-1b", "eu-west-1c", "us-east-1a", "us-east-1b"}
	states = []string{"passing", "passing", "passing", "passing", "passing", "passing", "warning", "critical"}
)

const note = "Runs behind the front proxy; restarted by its unit after three failed probes. Ask the team before draining it. "

// key is the name of row i, in the style of a service instance.
func key(i int) string {
	return fmt.Sprintf("%s/%s-%06d", teams[i%len(teams)], kinds[i/len(teams)%len(kinds)], i)
}

// row is the value of row i after that many changes: a service instance in
// JSON, of a given size if that is at least 260 bytes.
func row(i, changes, size int, now time.Time) []byte {
	n := uint32(i)*2654435761 + uint32(changes)*40503 // scattered, and the same in every run
	head := fmt.Sprintf(`{"name":"%s-%06d","team":"%s","zone":"%s","address":"10.%d.%d.%d:%d","state":"%s","cpu":%.2f,"memory_mb":%d,"requests_per_second":%d,"version":"%d.%d.%d","updated":"%s","note":"`,
		kinds[i/len(teams)%len(kinds)], i, teams[i%len(teams)], zones[i%len(zones)],
		i>>16&255, i>>8&255, i&255, 8000+i%1000, states[n>>8%8], float64(n>>4%400)/100, 64+n>>12%4000, n>>16%5000,
		1+i%3, i%17, i%29, now.UTC().Format("2006-01-02T15:04:05.000Z"))
	const tail = `"}`
	missing := max(0, size-len(head)-len(tail))
	return []byte(head + strings.Repeat(note, missing/len(note)+1)[:missing] + tail)
}
