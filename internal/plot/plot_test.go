package plot

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	points := make([]float64, 100_000)
	points[50_000] = 1.7e6
	got := Draw(Panel{"Clients", "s", 100, []Line{{"open", points}, {"in sync", []float64{0, 1}}}}, Panel{Title: "Nothing"})
	if len(got) > 50_000 {
		t.Errorf("%d bytes, want at most 50,000", len(got))
	}
	for _, want := range []string{">2 M<", ">100 s<", ">in sync<", " 58.6L"} { // the peak, at 15 % of the height below the top
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
	d := xml.NewDecoder(strings.NewReader(got))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
