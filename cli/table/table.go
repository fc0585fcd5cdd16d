// Package table prints objects as kubectl get does: as a table, wide or not, by their names, as JSON or as YAML. What is in the
// columns is decided elsewhere.
package table

import (
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Formats are the values of --output.
var Formats = []string{"", "wide", "name", "json", "yaml"}

// Table is what is printed.
type Table struct {
	Columns []Column
	Rows    []Row
	// Nothing is what a table without rows says.
	Nothing string
}

// Column of a table.
type Column struct {
	Name string
	Wide bool // only with --output=wide
}

// Row is an object, or a part of one, with a cell for each column.
type Row struct {
	Object client.Object
	Cells  []any
}

// Name writes the name of an object as kubectl get does with --output=name. The scheme knows its kind.
func Name(out io.Writer, scheme *runtime.Scheme, object client.Object) error {
	return Print(out, "name", scheme, Table{Rows: []Row{{Object: object}}})
}

// Print writes a table in a format. The scheme knows the kinds of the objects. An object with several rows is printed once
// by its name, as JSON and as YAML.
func Print(out io.Writer, format string, scheme *runtime.Scheme, table Table) error {
	if format == "" || format == "wide" {
		return table.print(out, format == "wide")
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	var objects []runtime.Object
	for i, row := range table.Rows {
		if slices.ContainsFunc(table.Rows[:i], func(r Row) bool { return r.Object == row.Object }) {
			continue
		}
		object := row.Object.DeepCopyObject()
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return err
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		objects = append(objects, object)
		list.Items = append(list.Items, runtime.RawExtension{Object: object})
	}
	switch format {
	case "json":
		return (&printers.JSONPrinter{}).PrintObj(list, out)
	case "yaml":
		return (&printers.YAMLPrinter{}).PrintObj(list, out)
	}
	for _, object := range objects {
		if err := (&printers.NamePrinter{}).PrintObj(object, out); err != nil {
			return err
		}
	}
	return nil
}

func (t Table) print(out io.Writer, wide bool) error {
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintln(out, t.Nothing)
		return err
	}
	shown := &metav1.Table{}
	for _, column := range t.Columns {
		priority := int32(0)
		if column.Wide {
			priority = 1
		}
		shown.ColumnDefinitions = append(shown.ColumnDefinitions, metav1.TableColumnDefinition{Name: column.Name, Type: "string", Priority: priority})
	}
	for _, row := range t.Rows {
		shown.Rows = append(shown.Rows, metav1.TableRow{Cells: row.Cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(shown, out)
}
