// Command images builds Refit's container images without Docker: each program of cmd/refit-*, static, alone in
// an image. The same sources, version and compiler give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/refit-project/refit/hack/images/build"
	"github.com/refit-project/refit/hack/images/oci"
)

const about = `Usage: images [flags]

Builds each program of cmd/refit-* (and each --extra) into dist and an image of each, writes the images to
dist/images/NAME.tar in the OCI image layout, and pushes them as PUSH/NAME:VERSION when --push is given.

  images --push 127.0.0.1:20730/refit-project       the registry of a test cluster, see .cluster/registry

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	config, err := parse(args)
	if err != nil {
		return err
	}
	programs, err := config.programs()
	if err != nil {
		return err
	}
	builder, err := config.builder()
	if err != nil {
		return err
	}
	folder := filepath.Join(config.root, "dist", "images")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	// The compiler checks for each program whether it is up to date, and layers are compressed, each on one processor.
	processors := make(chan struct{}, runtime.NumCPU())
	ahead, stop := context.WithCancel(ctx) // a fault stops those that have not begun
	defer stop()
	faults := make([]error, len(programs))
	var work sync.WaitGroup
	for i, program := range programs {
		work.Go(func() {
			processors <- struct{}{}
			defer func() { <-processors }()
			if ahead.Err() != nil {
				return
			}
			if faults[i] = config.make(ctx, builder, program, folder); faults[i] != nil {
				stop()
			}
		})
	}
	work.Wait()
	return errors.Join(append(faults, ctx.Err())...)
}

// make builds a program and, unless only programs are to be built, its image, and pushes it.
func (c *config) make(ctx context.Context, builder *build.Builder, program build.Program, folder string) error {
	began := time.Now()
	if c.programsOnly {
		binary, err := builder.Compile(ctx, program, build.Native)
		if err != nil {
			return err
		}
		fmt.Printf("%s in %.1f s\n", binary, time.Since(began).Seconds())
		return nil
	}
	index, err := builder.Image(ctx, program, []string{build.Native})
	if err != nil {
		return err
	}
	archive := filepath.Join(folder, program.Name+".tar")
	if err := oci.Write(archive, repository+"/"+program.Name+":"+c.version, index, builder.Created); err != nil {
		return err
	}
	fmt.Printf("%s in %.1f s\n", archive, time.Since(began).Seconds())
	if c.push == "" {
		return nil
	}
	pushed, err := push(ctx, c.push+"/"+program.Name+":"+c.version, index)
	if err != nil {
		return err
	}
	fmt.Println("pushed", pushed)
	return nil
}

// push sends the image and returns its name with its digest.
func push(ctx context.Context, target string, index v1.ImageIndex) (string, error) {
	tag, err := name.NewTag(target)
	if err != nil {
		return "", fmt.Errorf("push: %w", err)
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push %s: %w", tag, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("push %s: %w", tag, err)
	}
	return tag.Name() + "@" + digest.String(), nil
}
