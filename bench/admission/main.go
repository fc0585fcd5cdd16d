// Command admission times the creation of pods into which SidecarSets inject, against pods in a namespace that the webhook
// is not called for: both in one run, in turn. bench/admission/run.sh does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"syscall"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/bench/report"
	"github.com/refit-project/refit/hack/democluster"
	"github.com/refit-project/refit/hack/install"
)

func main() {
	pods := flag.Int("pods", 600, "pods of each kind in each measurement")
	sets := flag.Int("sets", 100, "SidecarSets, of which two select the pods")
	required := flag.Bool("required", false, "SidecarSets with failurePolicy Fail: the admission policy looks at each of them")
	flag.Parse()
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *pods, *sets, *required)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-admission:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pods, sets int, required bool) (err error) {
	kubeconfig, state := os.Getenv("KUBECONFIG"), os.Getenv("REFIT_CLUSTER")
	if kubeconfig == "" || state == "" {
		return errors.New("start bench/admission/run.sh, or run this with .cluster/enter")
	}
	images, err := install.Pushed(".")
	if err != nil {
		return err
	}
	if err := install.Apply(ctx, install.Config{Root: ".", Kubectl: filepath.Join(state, "bin", "kubectl"), Images: images}); err != nil {
		return err
	}
	api, err := democluster.Connect(kubeconfig, v1beta1.AddToScheme)
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
	return report.Save(filepath.Join("dist", "bench"), "admission", kept, kept.print)
}
