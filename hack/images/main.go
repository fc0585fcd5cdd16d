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
	"strings"
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

Builds each program of cmd/refit-* (and each --extra) into BINARIES and an image of each, writes the images to
OUT/NAME.tar in the OCI image layout, and pushes them as PUSH/NAME:VERSION when --push is given.

  images --version v1.2.3 --platforms linux/amd64,linux/arm64 --push registry.example.com/team
  images --push 127.0.0.1:20730/refit-project       the registry of a test cluster, see .cluster/registry

SOURCE_DATE_EPOCH dates the images; without it they are dated 1970, so that equal content is an equal image.

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
	config, err := parse(args, os.Getenv("SOURCE_DATE_EPOCH"))
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
	if config.ProgramsOnly {
		return config.buildAll(ctx, builder, programs)
	}
	if err := os.MkdirAll(config.Out, 0o755); err != nil {
		return err
	}
	for _, program := range programs {
		began := time.Now()
		index, err := builder.Image(ctx, program, config.Platforms)
		if err != nil {
			return err
		}
		archive := filepath.Join(config.Out, program.Name+".tar")
		if err := oci.Write(archive, config.Repository+"/"+program.Name+":"+config.Version, index, config.Created); err != nil {
			return err
		}
		fmt.Printf("%s: %s in %.1f s\n", archive, strings.Join(config.Platforms, ", "), time.Since(began).Seconds())
		if config.Push == "" {
			continue
		}
		pushed, err := push(ctx, config.Push+"/"+program.Name+":"+config.Version, index)
		if err != nil {
			return err
		}
		fmt.Println("pushed", pushed)
	}
	return nil
}

// buildAll builds the programs alone.
func (c *Config) buildAll(ctx context.Context, builder *build.Builder, programs []build.Program) error {
	for _, program := range programs {
		for _, platform := range c.Platforms {
			began := time.Now()
			binary, err := builder.Compile(ctx, program, platform)
			if err != nil {
				return err
			}
			info, err := os.Stat(binary)
			if err != nil {
				return fmt.Errorf("build %s for %s: %w", program.Name, platform, err)
			}
			fmt.Printf("%s: %s, %.1f MB in %.1f s\n", binary, platform, float64(info.Size())/1e6, time.Since(began).Seconds())
		}
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
