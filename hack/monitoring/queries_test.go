// Package monitoring_test checks the queries of the chart's rules and dashboard with the parser of Prometheus: each metric and each
// label that they name is one of docs/metrics.md. rules_test.yaml has unit tests of the rules, which promtool runs:
//
//	go run -tags=remove_all_sd github.com/prometheus/prometheus/cmd/promtool test rules rules_test.yaml
package monitoring_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

var root = filepath.Join("..", "..")

// ofTarget are the labels that Prometheus adds to all metrics of a pod.
var ofTarget = []string{"instance", "job", "namespace", "pod", "container", "node"}

// foreign are the metrics of other programs, with their labels.
var foreign = map[string][]string{
	"kube_pod_container_status_restarts_total": {"namespace", "pod", "container", "uid"}, // kube-state-metrics
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| (.*?) \\| ")

// metrics are the metrics of docs/metrics.md with their labels, which a test there compares with the sources.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for _, match := range row.FindAllStringSubmatch(string(text), -1) {
		name, has := match[1], slices.Clone(ofTarget)
		for label := range strings.SplitSeq(match[3], ", ") {
			has = append(has, strings.Trim(label, "`"))
		}
		if match[2] != "histogram" {
			known[name] = has
			continue
		}
		known[name+"_bucket"] = append(slices.Clone(has), "le")
		known[name+"_sum"], known[name+"_count"] = has, has
	}
	if len(known) < 30 {
		t.Fatalf("only %d metrics in docs/metrics.md", len(known))
	}
	for name, has := range foreign {
		known[name] = has
	}
	return known
}

// check parses a query and reports what it names that is not there.
func check(t *testing.T, where, query string, known map[string][]string) {
	t.Helper()
	query = strings.NewReplacer("$__rate_interval", "5m", "$__interval", "1m", "$__range", "1h").Replace(query)
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	var has []string // of any metric of the query
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		labelsOf, ok := known[selector.Name]
		if !ok {
			t.Errorf("%s: there is no metric %s", where, selector.Name)
		}
		has = append(has, labelsOf...)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && !slices.Contains(labelsOf, matcher.Name) {
				t.Errorf("%s: %s has no label %s", where, selector.Name, matcher.Name)
			}
		}
		return nil
	})
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if of, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range of.Grouping {
				if !slices.Contains(has, label) {
					t.Errorf("%s: no metric of it has the label %s", where, label)
				}
			}
		}
		return nil
	})
}

type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "files", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read dashboard
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

var legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

func TestQueriesOfTheDashboard(t *testing.T) {
	t.Parallel()
	known := metrics(t)
	for _, panel := range readDashboard(t).Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("%s: no query", panel.Title)
		}
		for _, target := range panel.Targets {
			check(t, panel.Title, target.Expr, known)
			for _, label := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(target.Expr, label[1]) && !slices.Contains(ofTarget, label[1]) {
					t.Errorf("%s: the legend names %s, which the query does not return", panel.Title, label[1])
				}
			}
		}
	}
}

func TestPanelsOfTheDashboardDoNotOverlap(t *testing.T) {
	t.Parallel()
	panels := readDashboard(t).Panels
	ids := map[int]bool{}
	for i, a := range panels {
		if ids[a.ID] {
			t.Errorf("%s: another panel has the ID %d", a.Title, a.ID)
		}
		ids[a.ID] = true
		if a.GridPos.X+a.GridPos.W > 24 {
			t.Errorf("%s is wider than the dashboard", a.Title)
		}
		for _, b := range panels[i+1:] {
			p, q := a.GridPos, b.GridPos
			if p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H {
				t.Errorf("%s and %s overlap", a.Title, b.Title)
			}
		}
	}
}

func TestQueriesOfTheRules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "files", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Groups []struct {
			Rules []struct{ Record, Alert, Expr string } `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	known, count := metrics(t), 0
	tests, err := os.ReadFile("rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range read.Groups {
		for _, rule := range group.Rules {
			count++
			check(t, rule.Record+rule.Alert, rule.Expr, known)
			if !strings.Contains(string(tests), rule.Record+rule.Alert) {
				t.Errorf("%s: rules_test.yaml does not test it", rule.Record+rule.Alert)
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d rules", count)
	}
}
