package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"

	"github.com/refit-project/refit/signal"
)

// contender finds the target among all processes and sends it SIGHUP, once.
type contender struct {
	name string
	run  func(context.Context) error
}

func contenders(ctx context.Context, title string) ([]contender, error) {
	fs, err := signal.New("/proc")
	if err != nil {
		return nil, err
	}
	peer, err := procfs.NewFS("/proc")
	if err != nil {
		return nil, err
	}
	sel := signal.Selector{Title: title}
	known, err := fs.Find(ctx, sel)
	if err != nil {
		return nil, err
	}
	return []contender{
		{"signal.FS", func(ctx context.Context) error {
			_, err := fs.Signal(ctx, sel, syscall.SIGHUP)
			return err
		}},
		{"pkill -f", func(ctx context.Context) error {
			return exec.CommandContext(ctx, "pkill", "-HUP", "-f", "^"+regexp.QuoteMeta(title)+"( |$)").Run()
		}},
		{"prometheus/procfs", func(context.Context) error { return procfsLoop(peer, title) }},
		{"signal.FS, known", func(context.Context) error { return fs.Send(known[0], syscall.SIGHUP) }},
	}, nil
}

// procfsLoop is what one writes with prometheus/procfs: every process, its command line, kill(2). Like the
// others it looks at all of them, because the first match need not be the only one.
func procfsLoop(fs procfs.FS, title string) error {
	all, err := fs.AllProcs()
	if err != nil {
		return err
	}
	var found []int
	for _, p := range all {
		args, err := p.CmdLine()
		if err != nil {
			continue
		}
		if line := strings.Join(args, " "); line == title || strings.HasPrefix(line, title+" ") {
			found = append(found, p.PID)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("%d processes match", len(found))
	}
	return syscall.Kill(found[0], syscall.SIGHUP)
}
