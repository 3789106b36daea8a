package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of the picture.
const (
	panelWidth  = 9 * vg.Centimeter
	legendWidth = 3.6 * vg.Centimeter
	height      = 10 * vg.Centimeter
	margin      = 0.3 * vg.Centimeter
)

// A stroke is how a limiter is drawn. The colours are told apart by who sees no red and green, too,
// and the glyphs by who sees no colour.
type stroke struct {
	color color.Color
	glyph draw.GlyphDrawer
	width vg.Length
	dash  []vg.Length
}

var strokes = map[string]stroke{
	ours:        {color.RGBA{0xd5, 0x5e, 0x00, 0xff}, draw.CircleGlyph{}, 2.5, nil},
	ceiling:     {color.RGBA{0x55, 0x55, 0x55, 0xff}, draw.PyramidGlyph{}, 1.2, []vg.Length{4, 3}},
	bare:        {color.RGBA{0x00, 0x00, 0x00, 0xff}, draw.PlusGlyph{}, 1.2, []vg.Length{1.5, 2}},
	yardstick:   {color.RGBA{0x00, 0x72, 0xb2, 0xff}, draw.SquareGlyph{}, 1.5, nil},
	"ulule":     {color.RGBA{0x00, 0x9e, 0x73, 0xff}, draw.TriangleGlyph{}, 1.5, nil},
	"throttled": {color.RGBA{0xcc, 0x79, 0xa7, 0xff}, draw.RingGlyph{}, 1.5, nil},
}

// drawPlot draws decisions a second by goroutines, a panel for each workload, as SVG. Both axes are
// logarithmic: the limiters are a hundred times apart. The background is white, so that the
// picture can be read on a dark page.
func drawPlot(w io.Writer, r result) error {
	panels, legend, err := panels(r)
	if err != nil || len(panels) == 0 {
		return err
	}
	canvas := vgsvg.New(panelWidth*vg.Length(len(panels))+legendWidth, height)
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	strip := draw.Crop(page, page.Max.X-page.Min.X-legendWidth+margin, 0, height/4, -height/6)
	page = draw.Crop(page, margin, -legendWidth, margin, -margin)
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 2 * margin}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, page)[0] {
		panels[i].Draw(c)
	}
	legend.Draw(strip)
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// A page is seldom read where the font is installed; these have the same widths.
	_, err = w.Write(bytes.ReplaceAll(svg.Bytes(), []byte("font-family:"+fontFamily+";"), []byte("font-family:"+fontFamily+",Arial,Helvetica,sans-serif;")))
	return err
}

const fontFamily = "Liberation Sans"

// panels makes a panel for each workload, all with the same axes, and one legend.
func panels(r result) ([]*plot.Plot, plot.Legend, error) {
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.Padding = vg.Points(4)
	legend.TextStyle.Font = sans(10)
	low, high := math.Inf(1), 0.0
	for _, s := range r.Rows {
		if s.RateMin > 0 {
			low = min(low, s.RateMin)
		}
		high = max(high, s.RateMax)
	}
	var all []*plot.Plot
	listed := map[string]bool{}
	last := workload{}
	for _, row := range r.rows {
		if row.workload == last || low > high { // there is no rate at all
			continue
		}
		last = row.workload
		p := newPanel(r, row.workload)
		p.Y.Min, p.Y.Max = low*0.7, high*1.4
		for _, c := range r.contenders {
			line, err := addLine(p, c.name, row.workload, r.Rows)
			if err != nil {
				return nil, legend, err
			}
			if line != nil && !listed[c.name] {
				listed[c.name] = true
				legend.Add(c.name, line...)
			}
		}
		all = append(all, p)
	}
	return all, legend, nil
}

func sans(size vg.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

func newPanel(r result, w workload) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = w.String()
	p.X.Label.Text, p.Y.Label.Text = "goroutines", "decisions/s"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.TickerFunc(decades)
	few, many := math.MaxInt, 0
	var ticks []plot.Tick
	for _, row := range r.rows {
		if row.workload == w {
			few, many = min(few, row.goroutines), max(many, row.goroutines)
			ticks = append(ticks, plot.Tick{Value: float64(row.goroutines), Label: fmt.Sprint(row.goroutines)})
		}
	}
	p.X.Min, p.X.Max = float64(few)/1.5, float64(many)*1.5
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	for _, style := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font} {
		*style = sans(10)
	}
	p.Title.Padding = vg.Points(6)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xdd}, color.Gray{0xdd}
	p.Add(grid)
	return p
}

// decades marks 1, 2 and 5 times each power of ten.
func decades(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if v := power * step; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: short(v)})
			}
		}
	}
	return ticks
}

// short writes 20000 as 20 k.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3g M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3g k", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}

// rates are the points of one line, with the least and the most of the rounds.
type rates struct {
	plotter.XYs
	plotter.YErrors
}

// addLine draws a limiter, and returns what stands for it in the legend; nothing if it has no
// rate that a logarithm could be taken of.
func addLine(p *plot.Plot, limiter string, w workload, all []summary) ([]plot.Thumbnailer, error) {
	var points rates
	for _, s := range all {
		if s.Limiter == limiter && s.Workload == w.kind && s.Users == w.users && s.RateMin > 0 {
			points.XYs = append(points.XYs, plotter.XY{X: float64(s.Goroutines), Y: s.Rate})
			points.YErrors = append(points.YErrors, struct{ Low, High float64 }{s.Rate - s.RateMin, s.RateMax - s.Rate})
		}
	}
	if len(points.XYs) == 0 {
		return nil, nil
	}
	line, dots, err := plotter.NewLinePoints(points.XYs)
	if err != nil {
		return nil, err
	}
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return nil, err
	}
	s, ok := strokes[limiter]
	if !ok {
		s = stroke{color.Gray{0x80}, draw.CrossGlyph{}, 1, nil}
	}
	line.LineStyle = draw.LineStyle{Color: s.color, Width: s.width, Dashes: s.dash}
	dots.GlyphStyle = draw.GlyphStyle{Color: s.color, Radius: vg.Points(3), Shape: s.glyph}
	bars.LineStyle = draw.LineStyle{Color: s.color, Width: vg.Points(0.8)}
	p.Add(bars, line, dots)
	return []plot.Thumbnailer{line, dots}, nil
}
