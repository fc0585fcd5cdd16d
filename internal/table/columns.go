package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// columnsPrinter prints the columns of --output=custom-columns, which k8s.io/cli-runtime does not have.
type columnsPrinter struct {
	names []string
	paths []*jsonpath.JSONPath
	// noHeaders leaves out the names.
	noHeaders bool
}

var errColumn = errors.New("want NAME:JSONPATH,..., for example NAME:.metadata.name,NODE:.spec.nodeName")

// parseColumns parses NAME:JSONPATH,....
func parseColumns(spec string) (*columnsPrinter, error) {
	p := &columnsPrinter{}
	for _, column := range strings.Split(spec, ",") {
		name, path, _ := strings.Cut(column, ":")
		if name == "" || path == "" {
			return nil, errColumn
		}
		parsed := jsonpath.New(name).AllowMissingKeys(true)
		if err := parsed.Parse(fullPath(path)); err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		p.names, p.paths = append(p.names, name), append(p.paths, parsed)
	}
	return p, nil
}

// fullPath adds the braces and the first dot that kubectl lets the user leave out.
func fullPath(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	return "{." + strings.TrimPrefix(path, ".") + "}"
}

// PrintObj prints an object, or the items of a list.
func (p *columnsPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	objects := []runtime.Object{object}
	if list, ok := object.(*metav1.List); ok {
		objects = nil
		for _, item := range list.Items {
			objects = append(objects, item.Object)
		}
	}
	shown := &metav1.Table{}
	for _, name := range p.names {
		shown.ColumnDefinitions = append(shown.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for _, one := range objects {
		cells, err := p.cells(one)
		if err != nil {
			return err
		}
		shown.Rows = append(shown.Rows, metav1.TableRow{Cells: cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{NoHeaders: p.noHeaders}).PrintObj(shown, out)
}

func (p *columnsPrinter) cells(object runtime.Object) ([]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	var cells []any
	for i, path := range p.paths {
		found, err := path.FindResults(fields)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", p.names[i], err)
		}
		var values []string
		for _, results := range found {
			for _, value := range results {
				values = append(values, fmt.Sprint(value.Interface()))
			}
		}
		if len(values) == 0 {
			values = []string{"<none>"}
		}
		cells = append(cells, strings.Join(values, ","))
	}
	return cells, nil
}
