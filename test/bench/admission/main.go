// Command admission times the creation of pods into which SidecarSets inject, against pods in a namespace that the webhook
// is not called for: both in one run, in turn. make bench-admission does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func main() {
	pods := flag.Int("pods", 600, "pods of each kind in each measurement")
	sets := flag.Int("sets", 100, "SidecarSets, of which two select the pods")
	required := flag.Bool("required", false, "SidecarSets with failurePolicy Fail: the admission policy looks at each of them")
	flag.Parse()
	benchmark := testcluster.Benchmark{
		Name: "admission", Types: []func(*runtime.Scheme) error{v1beta1.AddToScheme, admissionregistrationv1.AddToScheme},
		Measure: func(ctx context.Context, c *testcluster.Cluster) (report.Findings, error) {
			return (&bench{Cluster: c, sets: *sets, required: *required}).run(ctx, *pods)
		},
	}
	benchmark.Main()
}

func (b *bench) run(ctx context.Context, pods int) (kept report.Findings, err error) {
	defer func() { err = errors.Join(err, b.tearDown(context.WithoutCancel(ctx))) }()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	found := &findings{Machine: report.Begin(), SidecarSets: b.sets, Required: b.required}
	for _, parallel := range []int{1, 8} {
		b.Say("%d pods of each kind, %d at a time", pods, parallel)
		measured, err := b.measure(ctx, pods, parallel)
		if err != nil {
			return nil, err
		}
		found.Results = append(found.Results, measured)
	}
	return found, nil
}
