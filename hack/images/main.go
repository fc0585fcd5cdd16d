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
	for _, program := range programs {
		began := time.Now()
		if config.programsOnly {
			binary, err := builder.Compile(ctx, program, build.Native)
			if err != nil {
				return err
			}
			fmt.Printf("%s in %.1f s\n", binary, time.Since(began).Seconds())
			continue
		}
		index, err := builder.Image(ctx, program, []string{build.Native})
		if err != nil {
			return err
		}
		archive := filepath.Join(folder, program.Name+".tar")
		if err := oci.Write(archive, repository+"/"+program.Name+":"+config.version, index, builder.Created); err != nil {
			return err
		}
		fmt.Printf("%s in %.1f s\n", archive, time.Since(began).Seconds())
		if config.push == "" {
			continue
		}
		pushed, err := push(ctx, config.push+"/"+program.Name+":"+config.version, index)
		if err != nil {
			return err
		}
		fmt.Println("pushed", pushed)
	}
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
