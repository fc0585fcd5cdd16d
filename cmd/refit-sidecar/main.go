// Command refit-sidecar does in its own pod what refit-daemon does on a node, where there is no node to run a daemon on.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set when linking.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(version).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "refit-sidecar:", err)
		os.Exit(1)
	}
}
