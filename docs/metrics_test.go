package docs_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/metrics.md again")

// metric is one that a program registers.
type metric struct {
	program, name, kind, help string
	labels                    []string
}

// programOf is the program that serves a metric. Metrics of the daemon have no name of a program in theirs.
func programOf(name string) string {
	for _, program := range []string{"manager", "sidecar"} {
		if strings.HasPrefix(name, "refit_"+program+"_") {
			return "refit-" + program
		}
	}
	return "refit-daemon"
}

// metrics finds every metric in the sources: the name, the help and the labels are literals there.
func metrics(t *testing.T) []metric {
	t.Helper()
	var found []metric
	walkProduct(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if m, ok := read(t, path, call); ok {
				m.program = programOf(m.name)
				found = append(found, m)
			}
			return true
		})
	})
	slices.SortFunc(found, func(a, b metric) int { return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.name, b.name)) })
	return slices.CompactFunc(found, func(a, b metric) bool { return a.program == b.program && a.name == b.name })
}

// read reads a call of prometheus.NewCounter and the like.
func read(t *testing.T, path string, call *ast.CallExpr) (metric, bool) {
	t.Helper()
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return metric{}, false
	}
	if of, ok := function.X.(*ast.Ident); !ok || of.Name != "prometheus" || !strings.HasPrefix(function.Sel.Name, "New") {
		return metric{}, false
	}
	if function.Sel.Name == "NewDesc" {
		m := metric{name: text(call.Args[0]), help: text(call.Args[1]), labels: texts(call.Args[2]), kind: "gauge"}
		if strings.HasSuffix(m.name, "_total") {
			m.kind = "counter"
		}
		return m, m.name != "" // a name that users choose is no literal
	}
	kind := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(function.Sel.Name, "New"), "Vec"), "Func"))
	if !slices.Contains([]string{"counter", "gauge", "histogram", "summary"}, kind) {
		return metric{}, false
	}
	m := metric{kind: kind}
	options, ok := call.Args[0].(*ast.CompositeLit)
	if !ok {
		t.Errorf("%s: %s: options are no literal", path, function.Sel.Name)
		return metric{}, false
	}
	for _, element := range options.Elts {
		pair := element.(*ast.KeyValueExpr)
		switch value := pair.Value; pair.Key.(*ast.Ident).Name {
		case "Name":
			m.name = text(value)
		case "Help":
			m.help = text(value)
		case "ConstLabels":
			if literal, ok := value.(*ast.CompositeLit); ok {
				for _, label := range literal.Elts {
					m.labels = append(m.labels, text(label.(*ast.KeyValueExpr).Key))
				}
			}
		}
	}
	if strings.HasSuffix(function.Sel.Name, "Vec") {
		m.labels = append(m.labels, texts(call.Args[1])...)
	}
	if m.name == "" || m.help == "" {
		t.Errorf("%s: a metric without a name or help that could be read: %+v", path, m)
	}
	return m, true
}

// text is a literal, or several that are added.
func text(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		value, _ := strconv.Unquote(e.Value)
		return value
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	}
	return ""
}

func texts(expression ast.Expr) []string {
	literal, ok := expression.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var all []string
	for _, element := range literal.Elts {
		all = append(all, text(element))
	}
	return all
}

const metricsHead = `# Metrics

<!-- made from the sources: go test ./docs -run Metrics -update -->

How they are served: [install.md](install.md#refit-daemon) for refit-daemon and refit-manager, [sidecar.md](sidecar.md) for refit-sidecar. Each program
also has the metrics of the Go runtime and of its process, and refit-manager the metrics of controller-runtime. refit-sidecar has ` + "`refit_build_info`" + ` too. A histogram NAME has the series NAME_bucket, NAME_sum and NAME_count.

The chart has recording and alerting rules and a dashboard of them: ` + "`metrics.prometheusRule.enabled`, `metrics.dashboard.enabled`.\n" + `
![The panels of the dashboard during end-to-end tests](images/dashboard.svg)

This is not a screenshot of Grafana: ` + "`make dashboard-picture`" + ` reads the metrics of the programs on a test cluster while end-to-end tests run there, as
Prometheus does, evaluates the queries of the dashboard by Prometheus' engine and draws the result.
`

func TestMetricsReferenceIsUpToDate(t *testing.T) {
	t.Parallel()
	want := strings.Builder{}
	want.WriteString(metricsHead)
	program := ""
	for _, m := range metrics(t) {
		if m.program != program {
			program = m.program
			fmt.Fprintf(&want, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", program)
		}
		var labels []string
		for _, label := range m.labels {
			labels = append(labels, "`"+label+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(labels, ", "), strings.ReplaceAll(m.help, "|", "\\|"))
	}
	if *update {
		if err := os.WriteFile("metrics.md", []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("go test ./docs -run Metrics -update (-sources +file):\n%s", diff)
	}
}
