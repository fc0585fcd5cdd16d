package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/refit-project/refit/hack/images/build"
)

const (
	// repository is the name in front of the images' own in the archives.
	repository = "ghcr.io/refit-project"
	// certificates are the certificates of this machine; the images have them if it has any.
	certificates = "/etc/ssl/certs/ca-certificates.crt"
)

// config is what to build and where it goes.
type config struct {
	// root is the root of the checkout.
	root, version string
	// programsOnly builds no images.
	programsOnly bool
	// push is the name in front of the images' own in the registry that they are pushed to; empty pushes nothing.
	push string
	// extra are programs beside cmd/refit-*, as NAME=FOLDER.
	extra []string
}

func parse(args []string) (config, error) {
	c := config{root: filepath.Join("..", "..")}
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), about)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.version, "version", "dev", "tag of the images, and what the programs call themselves")
	flags.BoolVar(&c.programsOnly, "programs-only", false, "build the programs and no images")
	flags.StringVar(&c.push, "push", "", "push to this HOST[:PORT]/REPOSITORY")
	flags.Func("extra", "also build NAME=FOLDER, a folder with a main package; several with commas", func(value string) error {
		c.extra = append(c.extra, strings.Split(value, ",")...)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return c, c.validate()
}

var programName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// validate reports every fault of the configuration.
func (c *config) validate() error {
	var faults []error
	for _, extra := range c.extra {
		program, folder, _ := strings.Cut(extra, "=")
		if !programName.MatchString(program) || folder == "" {
			faults = append(faults, fmt.Errorf("extra %q: want NAME=FOLDER", extra))
		}
	}
	for _, to := range []string{repository, c.push} {
		if _, err := name.NewTag(to + "/image:" + c.version); to != "" && err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// programs are the programs of the checkout and the extra ones.
func (c *config) programs() ([]build.Program, error) {
	all, err := build.Programs(c.root)
	if err != nil {
		return nil, err
	}
	for _, extra := range c.extra {
		name, dir, _ := strings.Cut(extra, "=")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(c.root, dir)
		}
		all = append(all, build.Program{Name: name, Dir: dir})
	}
	slices.SortFunc(all, func(a, b build.Program) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// builder of the images. They are dated 1970, so that equal content is an equal image.
func (c *config) builder() (*build.Builder, error) {
	binaries, err := filepath.Abs(filepath.Join(c.root, "dist")) // the compiler runs in each program's own folder
	if err != nil {
		return nil, fmt.Errorf("find folder of the programs: %w", err)
	}
	found, err := os.ReadFile(certificates)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read CA certificates: %w", err)
	}
	return &build.Builder{
		Version: c.version, Binaries: binaries, Created: time.Unix(0, 0).UTC(), RootUser: []string{"refit-daemon"}, Certificates: found,
	}, nil
}
