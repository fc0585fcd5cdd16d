// Package table prints objects as kubectl get does: as a table, wide or not, by their names, as JSON or YAML, by a template or in
// columns that the user names. Columns of tables are decided elsewhere.
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

// Table is a table of objects.
type Table struct {
	Columns []Column
	Rows    []Row
	// Nothing is the message for a table without rows.
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

// Made prints an object that a command has created, as kubectl create does. The zero value prints nothing.
type Made struct {
	Out    io.Writer
	Format string // see [CheckFormat]; empty for none
}

// Begun prints the name of an object that was just created, so that a script has it even if it is interrupted. The scheme
// has its kind.
func (m Made) Begun(scheme *runtime.Scheme, object client.Object) error {
	if m.Format != "name" {
		return nil
	}
	return m.print(scheme, object)
}

// Ended prints an object as it is at the end of the command.
func (m Made) Ended(scheme *runtime.Scheme, object client.Object) error {
	if m.Format == "" || m.Format == "name" {
		return nil
	}
	return m.print(scheme, object)
}

// Separate writes what is between two objects.
func (m Made) Separate() error {
	if m.Format != "yaml" {
		return nil
	}
	_, err := fmt.Fprintln(m.Out, "---")
	return err
}

func (m Made) print(scheme *runtime.Scheme, object client.Object) error {
	shown, err := withKind(scheme, object)
	if err != nil {
		return err
	}
	printer, err := printerOf(Options{Format: m.Format})
	if err != nil {
		return err
	}
	return printer.PrintObj(shown, m.Out)
}

// withKind returns a copy of an object with its apiVersion and kind, which clients leave out.
func withKind(scheme *runtime.Scheme, object client.Object) (runtime.Object, error) {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, err
	}
	copied := object.DeepCopyObject()
	copied.GetObjectKind().SetGroupVersionKind(kind)
	return copied, nil
}

// Options say how objects are printed. The zero value is a table.
type Options struct {
	Format string // see [CheckFormat]
	// NoHeaders leaves out the names of the columns, and what is not a row: the empty line between tables, and Nothing.
	NoHeaders bool
}

// Print writes tables. Tables without rows are left out, unless no table has any. The scheme has the kinds of
// the objects. An object with several rows is printed once by its name, as JSON, and in the other formats of objects.
func Print(out io.Writer, options Options, scheme *runtime.Scheme, tables ...Table) error {
	if options.Format == "" || options.Format == "wide" {
		return printTables(out, options, tables)
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	var printed []client.Object
	for _, table := range tables {
		for _, row := range table.Rows {
			if slices.Contains(printed, row.Object) {
				continue
			}
			printed = append(printed, row.Object)
			object, err := withKind(scheme, row.Object)
			if err != nil {
				return err
			}
			list.Items = append(list.Items, runtime.RawExtension{Object: object})
		}
	}
	printer, err := printerOf(options)
	if err != nil {
		return err
	}
	if options.Format != "name" {
		return printer.PrintObj(list, out)
	}
	for _, item := range list.Items {
		if err := printer.PrintObj(item.Object, out); err != nil {
			return err
		}
	}
	return nil
}

// printTables writes the tables that have rows, with an empty line between them.
func printTables(out io.Writer, options Options, tables []Table) error {
	shown := slices.DeleteFunc(slices.Clone(tables), func(t Table) bool { return len(t.Rows) == 0 })
	if len(shown) == 0 && len(tables) > 0 && !options.NoHeaders {
		_, err := fmt.Fprintln(out, tables[0].Nothing)
		return err
	}
	for i, table := range shown {
		if i > 0 && !options.NoHeaders {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		if err := table.print(out, options); err != nil {
			return err
		}
	}
	return nil
}

func (t Table) print(out io.Writer, options Options) error {
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
	return printers.NewTablePrinter(printers.PrintOptions{Wide: options.Format == "wide", NoHeaders: options.NoHeaders}).PrintObj(shown, out)
}
