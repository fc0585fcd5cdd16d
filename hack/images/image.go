package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/refit-project/refit/hack/images/oci"
)

// native is this machine's platform.
const native = "linux/" + runtime.GOARCH

const (
	nonRoot     = "65532:65532"
	certificate = "etc/ssl/certs/ca-certificates.crt"
)

// image builds a program for every platform and makes one image of it.
func (c *Config) image(ctx context.Context, program program) (v1.ImageIndex, error) {
	var images []v1.Image
	for _, platform := range c.Platforms {
		image, err := c.platformImage(ctx, program, platform)
		if err != nil {
			return nil, fmt.Errorf("image %s for %s: %w", program.name, platform, err)
		}
		images = append(images, image)
	}
	return oci.Index(images...)
}

func (c *Config) platformImage(ctx context.Context, program program, platform string) (v1.Image, error) {
	binary := c.binary(program, platform)
	if err := c.build(ctx, program, platform, binary); err != nil {
		return nil, err
	}
	files, err := c.files()
	if err != nil {
		return nil, err
	}
	base, err := oci.Layer(files, c.Created)
	if err != nil {
		return nil, err
	}
	// A layer of its own: the one below is the same in every image and every version.
	layer, err := oci.Layer([]oci.File{{Path: program.path(), Mode: 0o755, Source: binary}}, c.Created)
	if err != nil {
		return nil, err
	}
	user := nonRoot
	if slices.Contains(c.RootUser, program.name) {
		user = "0:0"
	}
	return oci.Image(platform, v1.Config{
		Entrypoint: []string{"/" + program.path()},
		User:       user,
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    program.name,
			"org.opencontainers.image.version":  c.Version,
			"org.opencontainers.image.source":   "https://github.com/refit-project/refit",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}, c.Created, base, layer)
}

// binary is the path of a program for a platform.
func (c *Config) binary(program program, platform string) string {
	folder := c.Binaries
	if platform != native {
		folder = filepath.Join(folder, strings.ReplaceAll(platform, "/", "-"))
	}
	return filepath.Join(folder, program.name)
}

func (c *Config) build(ctx context.Context, program program, platform, binary string) error {
	parsed, err := v1.ParsePlatform(platform)
	if err != nil {
		return err
	}
	// grpcnotrace leaves out gRPC's trace pages, whose templates keep the linker from dropping unused methods:
	// 6 of 28 MB, and 4 MiB of a daemon's memory.
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace",
		"-ldflags=-s -w -X main.version="+c.Version, "-o", binary, ".")
	command.Dir = program.dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+parsed.OS, "GOARCH="+parsed.Architecture)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if variant := strings.TrimPrefix(parsed.Variant, "v"); parsed.Architecture == "arm" && variant != "" {
		command.Env = append(command.Env, "GOARM="+variant)
	}
	return command.Run()
}

// files are what a static program expects to find beside it.
func (c *Config) files() ([]oci.File, error) {
	text := func(path, content string) oci.File {
		return oci.File{Path: path, Mode: 0o644, Content: []byte(content)}
	}
	files := []oci.File{
		text("etc/passwd", "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"),
		text("etc/group", "root:x:0:\nnonroot:x:65532:\n"),
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	certificates, err := os.ReadFile(c.Certificates)
	if errors.Is(err, fs.ErrNotExist) || c.Certificates == "" {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	return append(files, oci.File{Path: certificate, Mode: 0o644, Content: certificates}), nil
}
