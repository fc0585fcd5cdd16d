// Command chaos restarts and probes containers on the checkout's cluster while it breaks that cluster, and judges from
// the records whether Refit kept its promises. Without a cluster it makes one and takes it down again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/refit-project/refit/hack/install"
	"github.com/refit-project/refit/hack/step"
	"github.com/refit-project/refit/test/chaos"
	"github.com/refit-project/refit/test/chaos/history/verdict"
	"github.com/refit-project/refit/test/chaos/meetings"
	"github.com/refit-project/refit/test/chaos/records"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

var errViolated = errors.New("promises were not kept, or the run was too small to tell")

func run(ctx context.Context, args []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	config := chaos.Config{State: filepath.Join(root, ".cluster"), Records: filepath.Join(root, "dist", "chaos"), Out: os.Stdout}
	duration := 10 * time.Minute
	if text := os.Getenv("DURATION"); text != "" {
		if duration, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("DURATION: %w", err)
		}
	}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.DurationVar(&config.Duration, "duration", duration, "of requests and faults; the environment variable DURATION is the default")
	flags.IntVar(&config.Pods, "pods", 20, "pods to work on")
	flags.Float64Var(&config.Rate, "rate", 1, "requests per second, over all pods")
	flags.Uint64Var(&config.Seed, "seed", uint64(time.Now().Unix()), "of the choices")
	flags.BoolVar(&config.KruiseCRDs, "kruise-crds", false, "under CRDs without the fields that OpenKruise's lack")
	flags.BoolVar(&config.Calm, "calm", false, "without faults, to see what processes do not give back")
	outages := flags.String("outages", "", "only these, separated by commas, such as node-anew,throttle")
	meet := flags.String("meetings", "", "only these meet on the pods of workloads, separated by commas: "+strings.Join(meetings.Names(), ", "))
	judge := flags.String("judge", "", "only judge the records in this folder again")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *outages != "" {
		config.Outages = strings.Split(*outages, ",")
	}
	if *meet != "" {
		config.Meetings = strings.Split(*meet, ",")
	}
	for name, other := range map[string]bool{"kruise-crds": config.KruiseCRDs, "calm": config.Calm} {
		if other { // the records of the ordinary run stay
			config.Records += "-" + name
		}
	}
	var report verdict.Report
	if *judge != "" {
		report, err = chaos.Judge(*judge)
	} else {
		report, err = storm(ctx, root, config)
	}
	if err != nil {
		return err
	}
	records.Print(os.Stdout, report)
	if !report.OK() {
		return errViolated
	}
	return nil
}

// storm makes the run on the checkout's cluster.
func storm(ctx context.Context, root string, config chaos.Config) (report verdict.Report, err error) {
	if err := config.ValidateLoad(); err != nil {
		return report, err
	}
	steps := step.New(os.Stdout, filepath.Join(root, "dist", "log"))
	_, err = os.Stat(config.State)
	own := errors.Is(err, fs.ErrNotExist)
	if err := steps.Run(ctx, "cluster up", step.Command{Argv: []string{"test/cluster/cluster.sh", "up"}, Echo: true}); err != nil {
		return report, err
	}
	if own {
		defer func() {
			down := step.Command{Argv: []string{"test/cluster/cluster.sh", "down"}}
			err = errors.Join(err, steps.Run(context.WithoutCancel(ctx), "cluster down", down))
		}()
	}
	if err := os.Setenv("KUBECONFIG", filepath.Join(config.State, "kubeconfig")); err != nil {
		return report, err
	}
	build := step.Command{Argv: []string{"hack/images.sh", "--extra", "testapp=test/e2e/testapp"}}
	if err := steps.Run(ctx, "images", build); err != nil {
		return report, err
	}
	images, err := install.Pushed(root)
	if err != nil {
		return report, err
	}
	for name, image := range map[string]*string{"testapp": &config.Image, "refit-sidecar": &config.Sidecar} {
		i := slices.IndexFunc(images, func(image string) bool { return strings.Contains(image, "/"+name+":") })
		if i < 0 {
			return report, fmt.Errorf("images: %s has not been pushed", name)
		}
		*image = images[i]
	}
	err = steps.Do("installing the manifests of deploy/", func() error {
		return install.Apply(ctx, install.Config{Root: root, Kubectl: filepath.Join(config.State, "bin", "kubectl"), Images: images})
	})
	if err != nil {
		return report, err
	}
	err = steps.Do("chaos for "+config.Duration.String(), func() error {
		report, err = chaos.Run(ctx, config)
		return err
	})
	return report, err
}
