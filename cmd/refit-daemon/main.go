// Command refit-daemon repairs the pods of one node in place.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/refit-project/refit/daemon"
)

// version is set when linking.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(version, run).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "refit-daemon:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, config daemon.Config, libraries *slog.Logger) error {
	klog.SetSlogLogger(libraries)
	return daemon.Run(ctx, config)
}
