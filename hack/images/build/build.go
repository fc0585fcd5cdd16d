// Package build compiles Refit's programs and makes container images of them. The same sources, version and compiler give
// the same bytes. It reads no flags and pushes nothing.
package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Native is this machine's platform.
const Native = "linux/" + runtime.GOARCH

// Flags are flags of go build, before -ldflags. The tag grpcnotrace leaves out gRPC's trace pages, whose templates keep the linker from
// dropping unused methods: 6 of 28 MB, and 4 MiB of a daemon's memory.
var Flags = []string{"-trimpath", "-buildvcs=false", "-tags=grpcnotrace"}

// Program is a main package and the name of its image.
type Program struct {
	Name string
	// Dir is the folder of its sources.
	Dir string
}

// path of the program in its image: the same in all images of one folder, so that a container can be given another of them.
func (p Program) path() string { return filepath.Base(p.Dir) }

// Programs are the programs of cmd/refit-* in the checkout: the ones that run in containers.
func Programs(root string) ([]Program, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "cmd", "refit-*"))
	if err != nil {
		return nil, fmt.Errorf("find programs: %w", err)
	}
	slices.Sort(dirs)
	var all []Program
	for _, dir := range dirs {
		all = append(all, Program{filepath.Base(dir), dir})
	}
	return all, nil
}

// Builder says how programs are built and what their images have beside them.
type Builder struct {
	// Version is what the programs call themselves.
	Version string
	// Binaries is the folder of the programs, kept so that the next build of the same sources has nothing to link;
	// those for other platforms than this machine's are in a folder of it named as linux-arm64.
	Binaries string
	// Created dates the files of the images.
	Created time.Time
	// RootUser are the images that run as root: their programs need files of the node that are root's. Others run as 65532.
	RootUser []string
	// Certificates are the CA certificates of the images, as PEM; empty: none.
	Certificates []byte
	// Environment of the compiler is added to the environment of this process, as KEY=VALUE.
	Environment []string
	// Labels are added to those that every image has.
	Labels map[string]string
}

// Binary is the path of a program for a platform, written as "linux/amd64".
func (b *Builder) Binary(program Program, platform string) string {
	folder, name := b.Binaries, program.Name
	if platform != Native {
		folder = filepath.Join(folder, strings.ReplaceAll(platform, "/", "-"))
	}
	if strings.HasPrefix(platform, "windows/") {
		name += ".exe"
	}
	return filepath.Join(folder, name)
}

// LinkerFlags are the last flag of go build.
func (b *Builder) LinkerFlags() string { return "-ldflags=-s -w -X main.version=" + b.Version }

// Compile builds a program for a platform and returns its path.
func (b *Builder) Compile(ctx context.Context, program Program, platform string) (string, error) {
	parsed, err := v1.ParsePlatform(platform)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", program.Name, err)
	}
	binary := b.Binary(program, platform)
	arguments := append([]string{"build"}, Flags...)
	arguments = append(arguments, b.LinkerFlags(), "-o", binary, ".")
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = program.Dir
	command.Env = append(append(os.Environ(), b.Environment...), "CGO_ENABLED=0", "GOOS="+parsed.OS, "GOARCH="+parsed.Architecture)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("build %s for %s: %w", program.Name, platform, err)
	}
	return binary, nil
}
