package table

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/refit-project/refit/internal/console"
)

// customColumns begins the format that names its columns, as kubectl's.
const customColumns = "custom-columns="

// Formats are the usual values of --output for objects. All of kubectl get are accepted, also kyaml, jsonpath-file and the like.
var Formats = []string{"name", "json", "yaml", "jsonpath", "go-template", "custom-columns"}

// CheckFormat refuses a value of --output that [Print] and [Made] do not have. tables says whether there is a table, and so wide.
func CheckFormat(format string, tables bool) error {
	if format == "" || format == "wide" && tables {
		return nil
	}
	_, err := printerOf(Options{Format: format})
	if tables && errors.Is(err, errFormat) {
		return fmt.Errorf("%w, wide", err)
	}
	return err
}

var errFormat = fmt.Errorf("%w: unknown format", console.ErrUsage)

// printerOf returns kubectl's printer for a format that is not a table. It leaves out managedFields.
func printerOf(options Options) (printers.ResourcePrinter, error) {
	format := options.Format
	if spec, ok := strings.CutPrefix(format, customColumns); ok {
		printer, err := parseColumns(spec)
		if err != nil {
			return nil, fmt.Errorf("%w: --output=%s: %w", console.ErrUsage, format, err)
		}
		printer.noHeaders = options.NoHeaders
		return printer, nil
	}
	flags := genericclioptions.NewPrintFlags("").WithDefaultOutput(format)
	printer, err := flags.ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, fmt.Errorf("%w: --output=%s: want %s", errFormat, format, strings.Join(Formats, ", "))
	case err != nil: // a template that cannot be read
		return nil, fmt.Errorf("%w: --output=%s: %w", console.ErrUsage, format, err)
	}
	return &printers.OmitManagedFieldsPrinter{Delegate: printer}, nil
}
