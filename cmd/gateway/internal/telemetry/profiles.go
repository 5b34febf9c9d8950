package telemetry

import (
	"bytes"
	"net/http"
	"net/http/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

// Handler serves the profiles for go tool pprof, below /debug/pprof/. recorder may be nil.
func Handler(recorder *FlightRecorder) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/debug/pprof/flight", recorder)
	return bounded(mux)
}

const (
	// mostSeconds is how long a profile or a trace may last: each slows the process.
	mostSeconds = 60
	// mostAtOnce is the number of requests that are served at a time.
	mostAtOnce = 4
)

// bounded serves few requests at a time, and none for long.
func bounded(next http.Handler) http.Handler {
	places := make(chan struct{}, mostAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not more than, so that NaN is refused as well.
		if s, err := strconv.ParseFloat(r.FormValue("seconds"), 64); err == nil && !(s <= mostSeconds) {
			http.Error(w, "seconds="+strconv.FormatFloat(s, 'g', -1, 64)+": want at most "+strconv.Itoa(mostSeconds), http.StatusBadRequest)
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "10")
			http.Error(w, "too many profiles are being made: come back later", http.StatusServiceUnavailable)
		}
	})
}

const (
	// recorded is the least time that a recorder keeps, unless that is more than recordedBytes.
	recorded = 10 * time.Second
	// recordedBytes is how much a recorder keeps.
	recordedBytes = 16 << 20
)

// FlightRecorder keeps the end of an execution trace in memory, for go tool trace: what the process
// did in the last seconds, asked for after something was slow. A process has one at most.
//
// All methods may be called from any goroutine. A nil *Recorder keeps nothing.
type FlightRecorder struct {
	flight *trace.FlightRecorder // static after construction

	busy sync.Mutex // held while a copy is made
}

// Record starts a recorder, until Stop.
func Record() (*FlightRecorder, error) {
	r := &FlightRecorder{flight: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: recorded, MaxBytes: recordedBytes})}
	return r, r.flight.Start()
}

// Stop ends the recording.
func (r *FlightRecorder) Stop() {
	if r != nil {
		r.flight.Stop()
	}
}

// ServeHTTP answers with the last seconds. There is one copy at a time, since each takes memory.
func (r *FlightRecorder) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if r == nil {
		http.Error(w, "there is no flight recorder: want operations.flight_recorder: true in the configuration, and a restart", http.StatusNotFound)
		return
	}
	if !r.busy.TryLock() {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "somebody else is being sent a copy: come back later", http.StatusServiceUnavailable)
		return
	}
	defer r.busy.Unlock()
	// Not to w: the recorder must not wait for a client.
	var out bytes.Buffer
	if _, err := r.flight.WriteTo(&out); err != nil {
		http.Error(w, "the flight recorder: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="flight.trace"`)
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	_, _ = out.WriteTo(w)
}
