// Command admission times the creation of pods into which SidecarSets inject, against pods in a namespace that the webhook
// is not called for: both in one run, in turn. test/bench/admission/run.sh does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/hack/democluster"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func main() {
	pods := flag.Int("pods", 600, "pods of each kind in each measurement")
	sets := flag.Int("sets", 100, "SidecarSets, of which two select the pods")
	required := flag.Bool("required", false, "SidecarSets with failurePolicy Fail: the admission policy looks at each of them")
	flag.Parse()
	testcluster.Main(benchmark, func(ctx context.Context) error { return run(ctx, *pods, *sets, *required) })
}

const benchmark = "admission"

func run(ctx context.Context, pods, sets int, required bool) (err error) {
	where, err := testcluster.Find(benchmark)
	if err != nil {
		return err
	}
	if err := where.Install(ctx); err != nil {
		return err
	}
	api, err := democluster.Connect(where.Kubeconfig, v1beta1.AddToScheme)
	if err != nil {
		return err
	}
	b := &bench{api: api, sets: sets, required: required}
	defer func() { err = errors.Join(err, b.tearDown(context.WithoutCancel(ctx))) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	kept := &findings{Machine: report.Begin(), SidecarSets: sets, Required: required}
	for _, parallel := range []int{1, 8} {
		fmt.Printf("%d pods of each kind, %d at a time\n", pods, parallel)
		measured, err := b.measure(ctx, pods, parallel)
		if err != nil {
			return err
		}
		kept.Results = append(kept.Results, measured)
	}
	kept.End()
	if err := kept.print(os.Stdout); err != nil {
		return err
	}
	return report.Save(filepath.Join("dist", "bench"), benchmark, kept, kept.print, kept.figures()...)
}
