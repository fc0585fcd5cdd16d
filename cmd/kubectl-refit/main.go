// Command kubectl-refit changes running pods in place. Installed in the PATH it is also `kubectl refit`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/refit-project/refit/internal/console"
)

// version is set by the linker.
var version = "dev"

func main() {
	quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(version).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, console.Line(err))
		os.Exit(console.ExitCode(err))
	}
}
