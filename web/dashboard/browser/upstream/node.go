package main

import (
	"fmt"
	"strings"
	"time"
)

var conditions = []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}

// node is the value of node i after that many changes: an object as a kubelet reports it twice a second, with the
// images of the machine, so many that it has about the given size.
func node(i, changes, size int, now time.Time) []byte {
	at := now.UTC().Format("2006-01-02T15:04:05.000Z")
	var out strings.Builder
	fmt.Fprintf(&out, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%04d","uid":"5b7e1c1e-8d39-4a53-b8a2-%012d","labels":{"kubernetes.io/arch":"amd64","kubernetes.io/hostname":"node-%04d","node.kubernetes.io/instance-type":"m6i.4xlarge","topology.kubernetes.io/zone":"%s"}},`,
		i, i, i, zones[i%len(zones)])
	fmt.Fprintf(&out, `"spec":{"podCIDR":"10.%d.%d.0/24","providerID":"aws:///%s/i-%017x"},"status":{"capacity":{"cpu":"16","memory":"64315108Ki","pods":"110"},"usage":{"cpu":%.2f,"memory_mb":%d},"conditions":[`,
		i>>8&255, i&255, zones[i%len(zones)], i, float64((i*37+changes*11)%1600)/100, (i*7919+changes*131)%64000)
	for c, kind := range conditions {
		if c > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"type":"%s","status":"%s","lastHeartbeatTime":"%s","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"KubeletIsFine","message":"kubelet has reported that this is as it should be"}`,
			kind, [...]string{"False", "True"}[c/3], at)
	}
	out.WriteString(`],"nodeInfo":{"architecture":"amd64","containerRuntimeVersion":"containerd://2.1.4","kernelVersion":"6.12.48","kubeletVersion":"v1.34.1","operatingSystem":"linux"},"images":[`)
	for n := 0; n == 0 || out.Len() < size-200; n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"names":["registry.example/team-%02d/%s@sha256:%064x","registry.example/team-%02d/%s:v%d.%d"],"sizeBytes":%d}`,
			n%20, kinds[n%len(kinds)], (i+1)*(n+1)*2654435761, n%20, kinds[n%len(kinds)], n%9, n%31, 10_000_000+n*987_654)
	}
	out.WriteString(`]}}`)
	return []byte(out.String())
}
