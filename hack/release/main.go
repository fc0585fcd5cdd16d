// Command release builds everything that a release consists of into dist/release, from a clean checkout: images and programs
// for each platform, the chart, bills of materials, checksums, provenance and, with a key, signatures. The same commit and
// compiler give the same bytes, except signatures. `release verify` checks such a folder.
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

	"github.com/refit-project/refit/hack/release/signing"
)

const about = `Usage: release [flags]
       release verify [--key PUBLIC-KEY] [FOLDER]

  release --version v1.2.3
  COSIGN_PASSWORD=... release --version v1.2.3 --key cosign.key --push registry.example.com/refit
  release --version v1.2.3 --keyless --push ghcr.io/refit-project
  release verify --key cosign.pub dist/release

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "verify" {
		return verifyCommand(args[1:])
	}
	var options Options
	flags := newFlags("release")
	flags.StringVar(&options.Root, "root", filepath.Join("..", ".."), "root of the checkout")
	flags.StringVar(&options.Version, "version", "", "version, as v1.2.3; empty: the one of the chart, with the commit")
	flags.StringVar(&options.Out, "out", "", "folder of the release, which is emptied (default: dist/release of the checkout)")
	flags.StringVar(&options.Repository, "repository", "", "name in front of the images' own (default: the one of --push, or ghcr.io/refit-project)")
	flags.StringVar(&options.Push, "push", "", "push the images and the chart to this HOST[:PORT]/REPOSITORY")
	flags.BoolVar(&options.Keyless, "keyless", false, "sign by sigstore, as the workflow or the person that runs this")
	flags.BoolVar(&options.Unsigned, "unsigned", false, "push without signatures, which needs neither --key nor --keyless")
	flags.Func("platforms", "build only for these, as linux/amd64,linux/arm64", func(value string) error {
		options.Platforms = strings.Split(value, ",")
		return nil
	})
	flags.StringVar(&options.Key, "key", "", "sign with this private key in PEM, whose password is in COSIGN_PASSWORD")
	flags.StringVar(&options.Builder, "builder", "https://github.com/refit-project/refit/blob/main/docs/release.md#by-hand", "URI of who builds, for the provenance")
	flags.StringVar(&options.Invocation, "invocation", "", "URI of this run, for the provenance")
	flags.BoolVar(&options.Dirty, "dirty", false, "build a checkout with changes, to try this out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	options.Password = []byte(os.Getenv("COSIGN_PASSWORD"))
	return Run(ctx, options)
}

func verifyCommand(args []string) error {
	key := ""
	flags := newFlags("release verify")
	flags.StringVar(&key, "key", "", "public key in PEM; empty: signatures are not checked")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder := filepath.Join("..", "..", "dist", "release")
	if flags.NArg() > 0 {
		folder = flags.Arg(0)
	}
	var verifier *signing.Verifier
	if key != "" {
		var err error
		if verifier, err = signing.NewVerifier(key); err != nil {
			return err
		}
	}
	count, err := Verify(folder, verifier)
	if err != nil {
		return err
	}
	if verifier == nil {
		fmt.Printf("%d files are as in %s; NO SIGNATURE was checked: --key\n", count, sumsFile)
		return nil
	}
	fmt.Printf("%d files are as signed\n", count)
	return nil
}

func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), about)
		flags.PrintDefaults()
	}
	return flags
}
