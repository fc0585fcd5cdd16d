// Command picture runs a command that uses the test cluster, reads the metrics of refit-daemon and refit-manager meanwhile as
// Prometheus does, evaluates the queries of the dashboard by Prometheus' engine, and draws the panels as an SVG: what Grafana
// would show of that time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.kubectl, "kubectl", "kubectl", "`program`")
	flag.StringVar(&o.dashboard, "dashboard", filepath.Join("..", "..", "deploy", "chart", "files", "dashboard.json"), "`file` with the dashboard of Grafana")
	flag.StringVar(&o.out, "out", filepath.Join("..", "..", "docs", "images", "dashboard.svg"), "`file` to write")
	flag.DurationVar(&o.interval, "interval", 5*time.Second, "between two readings of the metrics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

type options struct {
	kubectl, dashboard, out string
	interval                time.Duration
}

func run(ctx context.Context, o options, command []string) error {
	if len(command) == 0 {
		return errors.New("name the command to run meanwhile: picture [FLAGS] -- COMMAND ARGS")
	}
	panels, err := readPanels(o.dashboard)
	if err != nil {
		return err
	}
	r, err := newRecorder(ctx, o)
	if err != nil {
		return err
	}
	defer r.close(context.WithoutCancel(ctx))
	began := time.Now()
	if err := r.during(ctx, exec.CommandContext(ctx, command[0], command[1:]...)); err != nil {
		return err
	}
	ended := time.Now()
	results, err := r.evaluate(ctx, panels, began, ended, o.interval)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.out, draw(results, began, ended), 0o644); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	fmt.Printf("%s: %d panels over %s, from %d readings of metrics\n", o.out, len(results), ended.Sub(began).Round(time.Second), r.readings)
	return nil
}
