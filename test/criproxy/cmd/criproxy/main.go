// Command criproxy is a recording and faulting CRI proxy, see package criproxy.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/refit-project/refit/test/criproxy"
)

func main() {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg := criproxy.Config{Logger: logger}
	flag.StringVar(&cfg.Listen, "listen", "", "socket to make, for the client under test")
	flag.StringVar(&cfg.Runtime, "runtime", "/run/containerd/containerd.sock", "socket of the real runtime")
	flag.StringVar(&cfg.Record, "record", "", "file to append one JSON line per call to")
	flag.StringVar(&cfg.Faults, "faults", "", `file of faults, read again when it changes; for example
{"StopContainer": {"delay": "2s"}, "ListContainers": {"code": "Unavailable", "count": 3},
 "ExecSync": {"hang": true, "probability": 0.5}, "GetContainerEvents": {"drop": true}}`)
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "criproxy passes CRI calls on to a runtime, records them, and spoils those it is told to.")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := criproxy.Run(ctx, cfg); err != nil {
		logger.Error("proxy ended", "err", err)
		os.Exit(1) //nolint:gocritic // there is nothing left to stop
	}
}
