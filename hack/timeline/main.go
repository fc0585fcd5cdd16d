// Command timeline records a restart in place and a deletion of the same pod on a test cluster, and draws both as
// docs/images/restart-timeline.svg.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-project/refit/hack/demokit"
)

func main() {
	out := flag.String("out", filepath.Join("docs", "images", "restart-timeline.svg"), "`file` to write")
	flag.Parse()
	program := demokit.Program{Name: "timeline", OwnCluster: true, Show: func(ctx context.Context, kit *demokit.Demo) error { return run(ctx, kit, *out) }}
	os.Exit(program.Main())
}

func run(ctx context.Context, kit *demokit.Demo, out string) error {
	r, err := newRecorder(kit)
	if err != nil {
		return err
	}
	defer func() { _ = r.runtime.Close() }()
	if err := kit.Report.Do("StatefulSet web of one pod", func() error { return r.setUp(ctx) }); err != nil {
		return err
	}
	var restart, deletion recording
	err = kit.Report.Do("restart of container app in place", func() (err error) {
		restart, err = r.record(ctx, r.restart)
		return err
	})
	if err != nil {
		return err
	}
	err = kit.Report.Do("deletion of the pod", func() (err error) {
		deletion, err = r.record(ctx, r.deletePod)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	var picture bytes.Buffer
	if err := draw(&picture, restart, deletion); err != nil {
		return err
	}
	if err := os.WriteFile(out, picture.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(kit.Out, "\n%s: container app was down for %s, against %s with deletion\n", out, restart.down(), deletion.down())
	return nil
}
