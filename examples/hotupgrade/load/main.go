// Command load sends requests to an HTTP server at a steady rate and counts what becomes of them, for examples/hotupgrade.
//
// Half of its clients keep one connection for all requests, the others open one for each. Nothing is tried again: a
// request that fails is a failure, whatever the server did.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/refit-project/refit/examples/hotupgrade/traffic"
)

func main() {
	address := flag.String("address", "", "`HOST:PORT` of the server")
	clients := flag.Int("clients", 16, "clients; half of them keep their connection")
	rate := flag.Int("rate", 400, "requests a second, of all clients")
	limit := flag.Duration("limit", 10*time.Minute, "end after this time; SIGTERM ends it before")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: load [flags]   send requests until SIGTERM, print one JSON line for each tenth of a second and one for all\n       load stop      send SIGTERM to process 1, which prints the rest")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.Arg(0) == "stop" {
		if err := syscall.Kill(1, syscall.SIGTERM); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, *limit)
	total := run(ctx, *address, *clients, *rate, json.NewEncoder(os.Stdout))
	cancel()
	stop()
	if total.Failed > 0 {
		os.Exit(1)
	}
}

// run sends requests until ctx ends.
func run(ctx context.Context, address string, clients, rate int, out *json.Encoder) traffic.Interval {
	counted := newTally(out)
	counting, enough := context.WithCancel(context.WithoutCancel(ctx))
	var printing, sending sync.WaitGroup
	printing.Go(func() { counted.print(counting) })
	pause := time.Duration(clients) * time.Second / time.Duration(rate)
	for i := range clients {
		c := &client{address: address, keep: i%2 == 0, tally: counted}
		offset := pause * time.Duration(i) / time.Duration(clients)
		sending.Go(func() { c.send(ctx, offset, pause) })
	}
	sending.Wait()
	enough()
	printing.Wait()
	return counted.end()
}
