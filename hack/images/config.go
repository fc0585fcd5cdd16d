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
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/refit-project/refit/hack/images/build"
)

// Config is what to build and where it goes.
type Config struct {
	// Root is the root of the checkout.
	Root    string
	Version string
	// Platforms are written as "linux/amd64".
	Platforms []string
	Out       string
	// Binaries is the folder of the programs.
	Binaries string
	// ProgramsOnly builds no images.
	ProgramsOnly bool
	// Repository is the name in front of the images' own in the archives, Push the same in the registry
	// they are pushed to; empty pushes nothing.
	Repository, Push string
	// Extra are programs beside cmd/refit-*, as NAME=FOLDER.
	Extra []string
	// RootUser are the images that run as root.
	RootUser []string
	// Certificates is a file of CA certificates to take along, if it is there.
	Certificates string
	Created      time.Time
}

// list is a flag that may be given several times or with commas.
type list struct{ values *[]string }

func (l list) String() string {
	if l.values == nil {
		return ""
	}
	return strings.Join(*l.values, ",")
}

func (l list) Set(value string) error {
	*l.values = append(*l.values, strings.Split(value, ",")...)
	return nil
}

func parse(args []string, epoch string) (Config, error) {
	config := Config{Created: time.Unix(0, 0).UTC()}
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), about)
		flags.PrintDefaults()
	}
	flags.StringVar(&config.Root, "root", "", "root of the checkout (default: found from the current folder upwards)")
	flags.StringVar(&config.Version, "version", "dev", "tag of the images, and what the programs call themselves")
	flags.Var(list{&config.Platforms}, "platforms", "platforms to build for (default: this machine's, "+build.Native+")")
	flags.StringVar(&config.Out, "out", "", "folder of the archives (default: dist/images of the checkout)")
	flags.StringVar(&config.Binaries, "binaries", "", "folder of the programs (default: dist of the checkout)")
	flags.BoolVar(&config.ProgramsOnly, "programs-only", false, "build the programs and no images")
	flags.StringVar(&config.Repository, "repository", "ghcr.io/refit-project", "name in front of the images' own in the archives")
	flags.StringVar(&config.Push, "push", "", "push to this HOST[:PORT]/REPOSITORY")
	flags.Var(list{&config.Extra}, "extra", "also build NAME=FOLDER, a folder with a main package")
	flags.Var(list{&config.RootUser}, "root-user", "images that run as root, others as 65532 (default: refit-daemon)")
	flags.StringVar(&config.Certificates, "ca-certificates", "/etc/ssl/certs/ca-certificates.crt", "CA certificates to take along, if there are any")
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	if flags.NArg() > 0 {
		return Config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return Config{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		config.Created = time.Unix(seconds, 0).UTC()
	}
	if err := config.complete(); err != nil {
		return Config{}, err
	}
	return config, config.Validate()
}

// complete fills in what was not given.
func (c *Config) complete() error {
	if c.Root == "" {
		root, err := findRoot()
		if err != nil {
			return err
		}
		c.Root = root
	}
	if c.Out == "" {
		c.Out = filepath.Join(c.Root, "dist", "images")
	}
	if c.Binaries == "" {
		c.Binaries = filepath.Join(c.Root, "dist")
	}
	// The compiler runs in each program's own folder.
	binaries, err := filepath.Abs(c.Binaries)
	if err != nil {
		return fmt.Errorf("find folder of the programs: %w", err)
	}
	c.Binaries = binaries
	if len(c.Platforms) == 0 {
		c.Platforms = []string{build.Native}
	}
	if len(c.RootUser) == 0 {
		c.RootUser = []string{"refit-daemon"}
	}
	return nil
}

var programName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Validate reports every fault of the configuration.
func (c *Config) Validate() error {
	var faults []error
	for _, platform := range c.Platforms {
		if parsed, err := v1.ParsePlatform(platform); err != nil || parsed.OS != "linux" || parsed.Architecture == "" {
			faults = append(faults, fmt.Errorf("platform %q: want linux/ARCHITECTURE", platform))
		}
	}
	for _, extra := range c.Extra {
		program, folder, _ := strings.Cut(extra, "=")
		if !programName.MatchString(program) || folder == "" {
			faults = append(faults, fmt.Errorf("extra %q: want NAME=FOLDER", extra))
		}
	}
	for _, repository := range []string{c.Repository, c.Push} {
		if repository == "" {
			continue
		}
		if _, err := name.NewTag(repository + "/image:" + c.Version); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// findRoot walks up to the folder with the sources of the programs.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "hack", "images", "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside a checkout of Refit")
		}
		dir = parent
	}
}

// programs are those of the checkout and the extra ones.
func (c *Config) programs() ([]build.Program, error) {
	all, err := build.Programs(c.Root)
	if err != nil {
		return nil, err
	}
	for _, extra := range c.Extra {
		name, dir, _ := strings.Cut(extra, "=")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(c.Root, dir)
		}
		all = append(all, build.Program{Name: name, Dir: dir})
	}
	slices.SortFunc(all, func(a, b build.Program) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// builder of the images, with the certificates that are there.
func (c *Config) builder() (*build.Builder, error) {
	builder := &build.Builder{Version: c.Version, Binaries: c.Binaries, Created: c.Created, RootUser: c.RootUser}
	if c.Certificates == "" {
		return builder, nil
	}
	certificates, err := os.ReadFile(c.Certificates)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read CA certificates: %w", err)
	}
	builder.Certificates = certificates
	return builder, nil
}
