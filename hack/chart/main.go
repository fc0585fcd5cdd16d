// Command chart writes what is made from deploy/chart: the plain manifests in the other folders of deploy, for kubectl apply, their
// kustomization, and the table of values in the chart's README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-project/refit/hack/chart/plain"
	"github.com/refit-project/refit/hack/chart/reference"
)

func main() {
	root := flag.String("root", filepath.Join("..", ".."), "root of the checkout")
	flag.Parse()
	if err := run(context.Background(), *root); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string) error {
	deploy := filepath.Join(root, "deploy")
	chart := filepath.Join(deploy, "chart")
	manifests, err := plain.Manifests(ctx, chart)
	if err != nil {
		return err
	}
	if manifests[plain.KustomizationFile], err = plain.Kustomization(deploy, manifests); err != nil {
		return err
	}
	for path, content := range manifests {
		if err := write(filepath.Join(deploy, path), content); err != nil {
			return err
		}
	}
	readme, err := reference.README(chart)
	if err != nil {
		return err
	}
	return write(filepath.Join(chart, "README.md"), readme)
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}
