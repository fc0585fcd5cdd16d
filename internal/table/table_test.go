package table_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	web, db := pod("web"), pod("db")
	full := table.Table{
		Columns: []table.Column{{Name: "POD"}, {Name: "STATE"}, {Name: "NODE", Wide: true}}, Nothing: "nothing",
		Rows: []table.Row{{web, []any{"web", "up", "node-1"}}, {web, []any{"web", "down", "node-1"}}, {db, []any{"db", "up", "node-2"}}},
	}
	for name, tc := range map[string]struct {
		table        table.Table
		format, want string
	}{
		"table":    {full, "", "POD   STATE\nweb   up\nweb   down\ndb    up\n"},
		"wide":     {full, "wide", "POD   STATE   NODE\nweb   up      node-1\nweb   down    node-1\ndb    up      node-2\n"},
		"names":    {full, "name", "pod/web\npod/db\n"},
		"nothing":  {table.Table{Nothing: "nothing"}, "", "nothing\n"},
		"no name":  {table.Table{Nothing: "nothing"}, "name", ""},
		"path":     {full, "jsonpath={.items[*].metadata.name}", "web db"},
		"template": {full, "go-template={{range .items}}{{.kind}} {{.metadata.name}};{{end}}", "Pod web;Pod db;"},
		"columns":  {full, "custom-columns=KIND:.kind,POD:{metadata.name},NODE:.spec.nodeName", "KIND   POD   NODE\nPod    web   <none>\nPod    db    <none>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := table.Print(&out, table.Options{Format: tc.format}, scheme, tc.table); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for format, words := range map[string][]string{"json": {`"kind": "List"`, `"kind": "Pod"`}, "yaml": {"kind: List", "kind: Pod"}} {
		for _, one := range []table.Table{full, {}} {
			var out bytes.Buffer
			if err := table.Print(&out, table.Options{Format: format}, scheme, one); err != nil || !strings.Contains(out.String(), words[0]) || strings.Count(out.String(), words[1]) != min(2, len(one.Rows)) {
				t.Errorf("%s: %v\n%s", format, err, out.String())
			}
		}
	}
}

// A script reads one object in each line.
func TestWithoutHeadersThereAreOnlyRows(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := func(name string) table.Table {
		return table.Table{Columns: []table.Column{{Name: "POD"}, {Name: "NODE", Wide: true}}, Rows: []table.Row{{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, []any{name, "node-1"}}}}
	}
	for name, tc := range map[string]struct {
		format string
		tables []table.Table
		want   string
	}{
		"two tables":      {"", []table.Table{of("web"), of("db")}, "web\ndb\n"},
		"wide":            {"wide", []table.Table{of("web")}, "web   node-1\n"},
		"nothing":         {"", []table.Table{{Nothing: "there are no pods"}}, ""},
		"columns":         {"custom-columns=KIND:.kind,POD:.metadata.name", []table.Table{of("web")}, "Pod   web\n"},
		"another format":  {"name", []table.Table{of("web")}, "pod/web\n"},
		"columns, no row": {"custom-columns=POD:.metadata.name", []table.Table{{}}, ""},
	} {
		var out bytes.Buffer
		if err := table.Print(&out, table.Options{Format: tc.format, NoHeaders: true}, scheme, tc.tables...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnknownFormatsAreRefused(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"xml", "wide", "jsonpath={", "go-template={{", "custom-columns=NAME", "custom-columns=", "custom-columns=NAME:{.a[}", "jsonpath"} {
		if err := table.CheckFormat(format, false); console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "--output="+format) {
			t.Errorf("%s: %v", format, err)
		}
	}
	for _, format := range []string{"", "name", "json", "yaml", "jsonpath={.kind}", "custom-columns=NAME:.metadata.name"} {
		if err := table.CheckFormat(format, false); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
	if err := table.CheckFormat("wide", true); err != nil {
		t.Error(err)
	}
}
