// Command timeline records a restart in place and a deletion of the same pod on a test cluster, and draws both as
// docs/images/restart-timeline.svg.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/refit-project/refit/hack/place"
	"github.com/refit-project/refit/hack/step"
)

func main() {
	out := flag.String("out", filepath.Join("docs", "images", "restart-timeline.svg"), "`file` to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "timeline:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string) error {
	where, err := place.Find()
	if err != nil {
		return err
	}
	if !where.Own {
		return fmt.Errorf("unset KUBECONFIG: times are read from the container runtime of the test cluster")
	}
	report := step.New(os.Stdout, filepath.Join(where.Root, "dist", "log"))
	if _, err := where.Prepare(ctx, report); err != nil {
		return err
	}
	r, err := newRecorder(where)
	if err != nil {
		return err
	}
	defer func() { _ = r.runtime.Close() }()
	if err := report.Do("StatefulSet web of one pod", func() error { return r.setUp(ctx) }); err != nil {
		return err
	}
	var restart, deletion recording
	err = report.Do("restart of container app in place", func() (err error) {
		restart, err = r.record(ctx, r.restart)
		return err
	})
	if err != nil {
		return err
	}
	err = report.Do("deletion of the pod", func() (err error) {
		deletion, err = r.record(ctx, r.deletePod)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	picture, err := draw(restart, deletion)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, picture, 0o644); err != nil {
		return err
	}
	fmt.Printf("\n%s: container app was down for %s, against %s with deletion\n", out, restart.down(), deletion.down())
	return nil
}
