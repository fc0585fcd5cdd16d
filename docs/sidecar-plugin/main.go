package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/refit-project/refit/sidecarmode"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := sidecarmode.Run(ctx, sidecarmode.Config{
		Namespace: os.Getenv("POD_NAMESPACE"), Pod: os.Getenv("POD_NAME"), Container: "refit-sidecar",
		Grace: 25 * time.Second, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Version: "example",
		Factories: append(sidecarmode.Builtin(), newHeartbeat), // the one line
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sidecar-plugin:", err)
		os.Exit(1)
	}
}
