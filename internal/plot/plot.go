// Package plot draws diagrams as SVG.
package plot

import (
	"fmt"
	"math"
	"strings"
)

// Panel is one diagram. All lines share the x axis, on which their points are evenly spread.
type Panel struct {
	Title string
	X     string // unit
	Last  float64
	Lines []Line
}

// Line is a series.
type Line struct {
	Name   string
	Points []float64
}

const (
	width, height = 760.0, 200.0 // of a panel
	left, right   = 70.0, 20.0
	above, below  = 40.0, 36.0
	columns       = 300 // most points of a line
)

var colors = []string{"#0b62c4", "#c4420b"}

// Draw returns panels, one below the other.
func Draw(panels ...Panel) string {
	var b strings.Builder
	all := height * float64(len(panels))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", width, all)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="#fff"/>`+"\n", width, all)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %g)">`+"\n", height*float64(i))
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p Panel) draw(b *strings.Builder) {
	most := 0.0
	for _, l := range p.Lines {
		for _, y := range l.Points {
			most = max(most, y)
		}
	}
	most = round(most)
	bottom, wide, high := height-below, width-left-right, height-above-below
	fmt.Fprintf(b, `<text x="%g" y="20" font-weight="bold">%s</text>`+"\n", left, p.Title)
	for i := range 3 {
		share := float64(i) / 2
		y := bottom - share*high
		fmt.Fprintf(b, `<path d="M%g %gH%g" stroke="#ccc"/><text x="%g" y="%g" text-anchor="end">%s</text>`+"\n", left, y, width-right, left-6, y+4, short(share*most))
		fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", left+share*wide, bottom+16, short(share*p.Last)+" "+p.X)
	}
	for i, l := range p.Lines {
		points := thin(l.Points)
		fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="1.5" d="`, colors[i])
		for j, y := range points {
			fmt.Fprintf(b, "%c%.1f %.1f", "LM"[bit(j == 0)], left+wide*float64(j)/float64(max(len(points)-1, 1)), bottom-high*y/most)
		}
		fmt.Fprintf(b, `"/><text x="%g" y="%g" text-anchor="end" fill="%s">%s</text>`+"\n", width-right-140*float64(len(p.Lines)-1-i), 20.0, colors[i], l.Name)
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// thin returns the largest of neighbouring points if there are too many, so that peaks stay.
func thin(points []float64) []float64 {
	if len(points) <= columns {
		return points
	}
	out := make([]float64, columns)
	for i, y := range points {
		at := i * columns / len(points)
		out[at] = max(out[at], y)
	}
	return out
}

// round returns the next number that is 1, 2 or 5 with zeroes.
func round(most float64) float64 {
	if most <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, n := range []float64{1, 2, 5} {
		if n*unit >= most {
			return n * unit
		}
	}
	return 10 * unit
}

func short(y float64) string {
	switch {
	case y >= 1e6:
		return fmt.Sprintf("%.3g M", y/1e6)
	case y >= 1e4:
		return fmt.Sprintf("%.3g k", y/1e3)
	}
	return fmt.Sprintf("%.4g", y)
}
