// Command refit-manager runs the webhooks and controllers of Refit beside the API server.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/refit-project/refit/manager"
)

// version is set by the linker.
var version = "dev"

func main() {
	runtime.MemProfileRate = 0 // no profile is served, and its table takes up to 1.4 MiB
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(version, manager.Run).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "refit-manager:", err)
		os.Exit(1)
	}
}
