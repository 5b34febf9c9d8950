package host

import (
	"bytes"
	"encoding/json"
	"math"
)

// encode returns v as JSON text on one line, '<', '>' and '&' as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// percent is a share with one decimal: below that is the noise of the
// measurement, and noise must not become events.
type percent float64

func percentOf(part, whole float64) percent {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return percent(math.Round(1000*part/whole) / 10)
}
