// Command refit-daemon repairs the pods of one node in place.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
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
	if config.PprofAddr == "" {
		// Nobody can read the profile, and its table of allocation sites takes up to 1.4 MiB: little in an idle daemon, most of
		// it after a load.
		runtime.MemProfileRate = 0
	}
	klog.SetSlogLogger(libraries)
	return daemon.Run(ctx, config)
}
