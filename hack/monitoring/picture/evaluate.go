package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// panel is what is read of a panel of the dashboard.
type panel struct {
	Title   string
	Type    string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }

	FieldConfig struct{ Defaults struct{ Unit string } }
}

// amount is a value in the panel's unit, in words; of Grafana's names of units those that the dashboard has.
func (p panel) amount(value float64) string {
	suffix := map[string]string{"s": " s", "reqps": "/s", "d": " days"}[p.FieldConfig.Defaults.Unit]
	return strconv.FormatFloat(value, 'g', 3, 64) + suffix
}

func readPanels(file string) ([]panel, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return dashboard.Panels, nil
}

// result is a panel with what its queries return.
type result struct {
	panel
	series []series
}

// series is one line of a panel.
type series struct {
	legend string
	le     string // upper bound of a bucket of a histogram
	points []promql.FPoint
}

// rateInterval is the interval of a Prometheus that reads every quarter of it.
const rateInterval = "1m"

// evaluate runs the queries of the panels over what was recorded.
func (r *recorder) evaluate(ctx context.Context, panels []panel, from, to time.Time, step time.Duration) ([]result, error) {
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 4 * r.interval, Parser: parser.NewParser(parser.Options{}),
	})
	var results []result
	for _, panel := range panels {
		evaluated := result{panel: panel}
		for _, target := range panel.Targets {
			expression := strings.NewReplacer("$__rate_interval", rateInterval, "$__interval", step.String(), "$__range", to.Sub(from).Round(time.Second).String()).Replace(target.Expr)
			query, err := engine.NewRangeQuery(ctx, r.db, nil, expression, from, to, step)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", panel.Title, err)
			}
			matrix, err := query.Exec(ctx).Matrix()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", panel.Title, err)
			}
			for _, found := range matrix {
				evaluated.series = append(evaluated.series, series{
					legend: legend(target.LegendFormat, found.Metric), le: found.Metric.Get(labels.BucketLabel), points: append([]promql.FPoint(nil), found.Floats...),
				})
			}
			query.Close()
		}
		results = append(results, evaluated)
	}
	return results, nil
}

var placeholder = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// legend is the name of a series as Grafana makes it.
func legend(format string, of labels.Labels) string {
	switch {
	case format == "" && of.Len() == 0:
		return ""
	case format == "":
		return of.String()
	}
	return strings.TrimSpace(placeholder.ReplaceAllStringFunc(format, func(text string) string {
		return of.Get(placeholder.FindStringSubmatch(text)[1])
	}))
}
