// Command inplace times in-place updates of pods, by the library that kubectl-refit uses, against deleting and recreating
// the same pods: both with the new image on the node, both in one run. bench/inplace/run.sh does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/refit-project/refit/bench/report"
	"github.com/refit-project/refit/hack/install"
)

func main() {
	pods := flag.String("pods", "1,10,40", "how many pods at once, one measurement each")
	only := flag.String("kinds", "", "only kinds with this text in their name")
	rounds := flag.Int("rounds", 3, "measurements of each kind")
	flag.Parse()
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *pods, *only, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-inplace:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pods, only string, rounds int) (err error) {
	kubeconfig := os.Getenv("KUBECONFIG")
	state := os.Getenv("REFIT_CLUSTER")
	if kubeconfig == "" || state == "" {
		return errors.New("start bench/inplace/run.sh, or run this with .cluster/enter")
	}
	images, err := install.Pushed(".")
	if err != nil {
		return err
	}
	if err := install.Apply(ctx, install.Config{Root: ".", Kubectl: filepath.Join(state, "bin", "kubectl"), Images: images}); err != nil {
		return err
	}
	c, err := openCluster(kubeconfig, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.tearDown(context.WithoutCancel(ctx))) }()
	if err := c.prepare(ctx); err != nil {
		return err
	}
	kept := &findings{Machine: report.Begin(), Rounds: rounds}
	began := time.Now()
	for text := range strings.SplitSeq(pods, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-pods %q: want numbers, as 1,10,40", pods)
		}
		for _, kind := range kinds {
			if !strings.Contains(kind.name, only) {
				continue
			}
			fmt.Printf("[%6.1fs] %s, %d pods, %d rounds\n", time.Since(began).Seconds(), kind.name, n, rounds)
			measured, err := c.measure(ctx, kind, n, rounds)
			if err != nil {
				return err
			}
			kept.Results = append(kept.Results, measured)
		}
	}
	kept.End()
	fmt.Println()
	if err := kept.print(os.Stdout); err != nil {
		return err
	}
	return report.Save(filepath.Join("dist", "bench"), "inplace", kept, kept.print)
}
