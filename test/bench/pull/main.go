// Command pull times image pulls by ImagePullJobs against `ctr images pull` of the same images, from one registry and in one
// run. test/bench/pull/run.sh does all that is needed.
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
	sizes := flag.String("sizes", "10,20,30,50,80,120,200,300,400,500", "sizes of the images in MB")
	parallel := flag.String("parallel", "1,3,5", "how many are pulled at once, one measurement each")
	rounds := flag.Int("rounds", 3, "measurements of each kind")
	flag.Parse()
	testcluster.Main(benchmark, func(ctx context.Context) error { return run(ctx, *sizes, *parallel, *rounds) })
}

const benchmark = "pull"

func run(ctx context.Context, sizes, parallel string, rounds int) (err error) {
	megabytes, err := numbers("-sizes", sizes)
	if err != nil {
		return err
	}
	ways, err := numbers("-parallel", parallel)
	if err != nil {
		return err
	}
	where, err := testcluster.Find(benchmark)
	if err != nil {
		return err
	}
	if err := where.Install(ctx); err != nil {
		return err
	}
	registry, err := serve(ctx, megabytes)
	if err != nil {
		return err
	}
	defer registry.close()
	c, err := openCluster(ctx, where.Kubeconfig, where.State, registry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.tearDown(context.WithoutCancel(ctx))) }()
	kept := &findings{Machine: report.Begin(), Rounds: rounds, Megabytes: megabytes}
	began := time.Now()
	for _, n := range ways {
		fmt.Printf("[%6.1fs] %d at a time, %d rounds\n", time.Since(began).Seconds(), n, rounds)
		measured, err := c.measure(ctx, n, rounds)
		if err != nil {
			return err
		}
		kept.Results = append(kept.Results, measured)
	}
	kept.End()
	fmt.Println()
	if err := kept.print(os.Stdout); err != nil {
		return err
	}
	return report.Save(filepath.Join("dist", "bench"), benchmark, kept, kept.print, kept.figures()...)
}

func numbers(flag, text string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: want numbers, as 1,3,5", flag, text)
		}
		all = append(all, n)
	}
	return all, nil
}
