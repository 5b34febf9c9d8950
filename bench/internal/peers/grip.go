package peers

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// hold is the origin. It answers each request once, and is not involved afterwards.
func hold(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Grip-Hold", "stream")
	w.Header().Set("Grip-Channel", "events")
	io.WriteString(w, ": hello\n\n")
}

type (
	gripPublish struct {
		Items []gripItem `json:"items"`
	}
	gripItem struct {
		Channel string      `json:"channel"`
		Formats gripFormats `json:"formats"`
	}
	gripFormats struct {
		HTTPStream gripStream `json:"http-stream"`
	}
	gripStream struct {
		Content string `json:"content"`
	}
)

// publish posts all events in one request.
func (p *pushpinServer) publish(events [][]byte) error {
	items := make([]gripItem, len(events))
	for i, e := range events {
		items[i] = gripItem{"events", gripFormats{gripStream{"data: " + string(e) + "\n\n"}}}
	}
	p.post.Reset()
	if err := json.NewEncoder(&p.post).Encode(gripPublish{items}); err != nil {
		return err
	}
	res, err := http.Post("http://"+p.control+"/publish/", "application/json", &p.post)
	if err != nil {
		return fmt.Errorf("publish to Pushpin: %w", err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("publish to Pushpin: it answered %s: %s", res.Status, said)
	}
	return err
}
