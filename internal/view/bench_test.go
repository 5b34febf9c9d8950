package view

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// service is a value of about 300 bytes.
func service(team int) []byte {
	return fmt.Appendf(nil, `{"id":"web-%d","team":"team-%d","state":"passing","replicas":3,"load":0.25,"node":{"name":"node-%d","address":"10.0.0.1","datacenter":"dc1"},"tags":["eu","http","primary"],"labels":{"zone":"zone-%d","tier":"front"},"check":{"id":"service:web","output":"HTTP GET http://10.0.0.1:8080/: 200 OK"},"modified":1700000000}`, team, team, team, team)
}

func change(team int) Change {
	key := fmt.Sprintf("team-%d/web", team)
	return Change{Old: &stream.Resource{Key: key, Revision: 1, Value: service(team)}, New: &stream.Resource{Key: key, Revision: 2, Value: service(team)}}
}

// BenchmarkCandidates is a change that concerns one of several definitions, evaluated
// after it.
func BenchmarkCandidates(b *testing.B) {
	for name, params := range map[string]func(i int) Params{
		"field":  func(i int) Params { return Params{Filter: fmt.Sprintf(`value.team == "team-%d"`, i)} },
		"label":  func(i int) Params { return Params{Labels: fmt.Sprintf(`zone=zone-%d`, i)} },
		"prefix": func(i int) Params { return Params{Prefix: fmt.Sprintf("team-%d/", i)} },
		"key":    func(i int) Params { return Params{Filter: fmt.Sprintf(`key == "team-%d/web"`, i)} },
	} {
		for _, n := range []int{1, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				var x Index[int]
				for i := range n {
					x.Add(i, parse(b, params(i)))
				}
				c := change(0)
				b.ReportAllocs()
				for b.Loop() {
					concerned := 0
					x.Candidates(c, func(c Candidate[int]) {
						if ok, _ := c.After(); ok {
							concerned++
						}
					})
					if concerned != 1 {
						b.Fatal(concerned)
					}
				}
			})
		}
	}
}

// BenchmarkEvaluate is one of 1,000 definitions that no index helps, for a change.
func BenchmarkEvaluate(b *testing.B) {
	for name, filter := range map[string]string{
		"less":       `value.replicas < %d`,
		"different":  `value.state != "passing-%d"`,
		"member":     `value.node.name != "node" && value.replicas < %d`,
		"contains":   `value.check.output.contains("%d")`,
		"matches":    `value.id.matches("^web-%d")`,
		"absent":     `value.absent > %d`,
		"has":        `has(value.node) || value.replicas == %d`,
		"or":         `value.team == "team-%d" || value.state == "critical"`,
		"exists":     `value.tags.exists(t, t == "tag-%d")`,
		"wholevalue": `value == "%d"`,
	} {
		b.Run(name, func(b *testing.B) {
			var x Index[int]
			const definitions = 1000
			for i := range definitions {
				x.Add(i, parse(b, Params{Filter: fmt.Sprintf(filter, i)}))
			}
			c := change(0)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%definitions == 0 { // so that a round is one evaluation
					x.Candidates(c, func(c Candidate[int]) { _, _ = c.After() })
				}
			}
		})
	}
}

// BenchmarkMatches is one definition and one of many resources, as when a view is built.
func BenchmarkMatches(b *testing.B) {
	for name, p := range map[string]Params{
		"equality": {Filter: `value.team == "team-1"`},
		"labels":   {Labels: "zone=zone-1"},
		"whole":    {Filter: `value.exists(m, m == "team")`},
		"prefix":   {Prefix: "team-2/"},
	} {
		b.Run(name, func(b *testing.B) {
			m, r := parse(b, p).Matcher(), change(1).New
			b.ReportAllocs()
			b.SetBytes(int64(len(r.Value)))
			for b.Loop() {
				_, _ = m.Matches(*r)
			}
		})
	}
}

func BenchmarkProject(b *testing.B) {
	d, r := parse(b, Params{Fields: []string{"state,node.name"}}), change(1).New
	b.ReportAllocs()
	b.SetBytes(int64(len(r.Value)))
	for b.Loop() {
		if _, err := d.Project(*r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	p := Params{Prefix: "team-1/", Labels: "zone in (a,b)", Filter: `value.team == "team-1" && value.replicas < 3`, Fields: []string{"state,node.name"}}
	b.ReportAllocs()
	for b.Loop() {
		parse(b, p)
	}
}

// BenchmarkMemory is what a definition keeps, in an index too.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		const n = 1000
		var x Index[int]
		before := live()
		for i := range n {
			x.Add(i, parse(b, Params{Filter: fmt.Sprintf(`value.team == "team-%d"`, i)}))
		}
		b.ReportMetric(float64(live()-before)/n, "B/definition")
		runtime.KeepAlive(&x)
	}
}

func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
