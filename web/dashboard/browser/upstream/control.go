package main

import (
	"encoding/json"
	"net/http"

	"github.com/watchtide/watchtide/stream"
)

// order is the body of every request; each handler reads what it needs of it.
type order struct {
	Watch string          `json:"watch"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	// Rows is the number of resources, each of Bytes bytes.
	Rows  int `json:"rows"`
	Bytes int `json:"bytes"`
	// Kind is what the rows are: "" for service instances, "node" for nodes of Kubernetes.
	Kind string `json:"kind"`
	// PerSecond is how many of them change.
	PerSecond int `json:"per_second"`
}

// control answers a request once the order is carried out.
func control(s *server) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, obey func(*http.Request, order) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			var o order
			if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if err := obey(r, o); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	handle("POST /fill", func(r *http.Request, o order) error { return s.fill(r.Context(), o) })
	handle("POST /change", func(_ *http.Request, o order) error { return s.change(o.Watch, o.PerSecond) })
	handle("POST /put", func(r *http.Request, o order) error {
		_, _, err := s.store.Writer(o.Watch).Put(r.Context(), stream.PutRequest{Key: o.Key, Value: o.Value})
		return err
	})
	handle("POST /delete", func(r *http.Request, o order) error {
		_, err := s.store.Writer(o.Watch).Delete(r.Context(), stream.DeleteRequest{Key: o.Key})
		return err
	})
	handle("POST /leave", func(*http.Request, order) error { s.leave(); return nil })
	handle("POST /come-back", func(*http.Request, order) error { return s.comeBack() })
	return mux
}
