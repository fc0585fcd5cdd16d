// Command hotupdate measures how long a hot update takes from the request until the program's signal handler has
// seen the new file: the real refit-sidecar against curl, mv and kill, from the same server, taking turns in one run.
// make bench-hotupdate builds what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"syscall"

	"github.com/refit-project/refit/test/bench/report"
)

func main() {
	if os.Getenv(roleEnv) == roleApp {
		beApp(os.Args[1])
		return
	}
	sidecar := flag.String("sidecar", "dist/bin/refit-sidecar", "the program to measure")
	dir := flag.String("dir", "", "folder on the file system to measure on (default: the system's for temporary files)")
	scale := flag.Float64("scale", 1, "how often each size's own number of rounds: 60 of 10 KiB, 30 of 10 MiB, 15 of 100 MiB")
	flag.Parse()
	ctx, stop := ossignal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, options{sidecar: *sidecar, dir: *dir, scale: *scale})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-hotupdate:", err)
		os.Exit(1)
	}
}

type options struct {
	sidecar, dir string
	scale        float64
}

// size of a file, how often it is updated against the clock, and how often under the eyes of a reader.
type size struct {
	name         string
	bytes        int64
	rounds, seen int
}

func sizes() []size {
	return []size{
		{"10 KiB", 10 << 10, 60, 100},
		{"10 MiB", 10 << 20, 30, 30},
		{"100 MiB", 100 << 20, 15, 5},
	}
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp(o.dir, "refit-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source, err := newOrigin(ctx, filepath.Join(dir, "origin"))
	if err != nil {
		return err
	}
	defer source.close()
	kept := findings{Machine: report.Begin(), FileSystem: fileSystem(dir)}
	all, err := contenders(ctx, o.sidecar, dir)
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.close())
		}
	}()
	if err != nil {
		return err
	}
	for _, s := range sizes() {
		rounds := max(2, int(float64(s.rounds)*o.scale))
		fmt.Printf("%s: %d rounds (%g x %d), then %d updates while a reader reads the file\n", s.name, rounds, o.scale, s.rounds, s.seen)
		s.rounds = rounds
		one, err := measure(ctx, source, all, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		kept.Sizes = append(kept.Sizes, one)
	}
	kept.End()
	return report.Finish("hotupdate", &kept)
}

// measure lets the contenders take turns; the order moves on by one each round. The first round is dropped.
func measure(ctx context.Context, source *origin, all []*contender, s size) (outcome, error) {
	if err := source.offer(s.bytes); err != nil {
		return outcome{}, err
	}
	sidecar := all[0]
	if err := sidecar.forgetPeak(); err != nil {
		return outcome{}, err
	}
	took := make([]times, len(all))
	for round := range s.rounds + 1 {
		for i := range all {
			i = (i + round) % len(all)
			// What the one before has left to the disk is not this one's to wait for.
			syscall.Sync()
			one, err := all[i].update(ctx, source.next(s.bytes))
			if err != nil {
				return outcome{}, fmt.Errorf("%s: %w", all[i].name, err)
			}
			if round > 0 {
				took[i].add(one)
			}
		}
	}
	o := outcome{Size: s.name, Bytes: s.bytes}
	for i, c := range all {
		o.Ways = append(o.Ways, took[i].summary(c.name))
	}
	var err error
	if o.PeakRSS, err = sidecar.peak(); err != nil {
		return o, err
	}
	o.Updates = s.seen
	o.Reads, o.Torn, err = watchReads(ctx, sidecar, source, s)
	return o, err
}

// watchReads updates while a reader reads the whole file again and again.
func watchReads(ctx context.Context, c *contender, source *origin, s size) (reads, torn int, err error) {
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			whole, err := readWhole(c.file, s.bytes)
			if err != nil {
				done <- err
				return
			}
			reads++
			if !whole {
				torn++
			}
		}
	}()
	for range s.seen {
		if _, err = c.update(ctx, source.next(s.bytes)); err != nil {
			break
		}
	}
	close(stop)
	return reads, torn, errors.Join(err, <-done)
}
