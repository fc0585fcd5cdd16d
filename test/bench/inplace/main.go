// Command inplace times in-place updates of pods, by the library that kubectl-refit uses, against deleting and recreating
// the same pods: both with the new image on the node, both in one run. test/bench/inplace/run.sh does all that is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func main() {
	pods := flag.String("pods", "1,10,40", "how many pods at once, one measurement each")
	only := flag.String("kinds", "", "only kinds with this text in their name")
	rounds := flag.Int("rounds", 3, "measurements of each kind")
	flag.Parse()
	testcluster.Main(benchmark, func(ctx context.Context) error { return run(ctx, *pods, *only, *rounds) })
}

const benchmark = "inplace"

func run(ctx context.Context, pods, only string, rounds int) (err error) {
	where, err := testcluster.Find(benchmark)
	if err != nil {
		return err
	}
	if err := where.Install(ctx); err != nil {
		return err
	}
	c, err := openCluster(where.Kubeconfig, where.State)
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
	return report.Save(filepath.Join("dist", "bench"), benchmark, kept, kept.print, kept.figures()...)
}
