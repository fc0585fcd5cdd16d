package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/refit-project/refit/hack/images/build"
	"github.com/refit-project/refit/hack/release/cosign"
	"github.com/refit-project/refit/hack/release/provenance"
	"github.com/refit-project/refit/hack/release/signing"
)

const (
	sumsFile       = "SHA256SUMS"
	signatureFile  = "SHA256SUMS.sig"
	provenanceFile = "provenance.json"
	envelopeFile   = "provenance.intoto.jsonl"
	imagesFile     = "images.txt"
	changesFile    = "CHANGES.md"
	krewFile       = "refit.yaml"
	bundleFile     = "SHA256SUMS.sigstore.json"
)

var (
	nodePlatforms = []string{"linux/amd64", "linux/arm64"}
	userPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}
)

// Options of a release.
type Options struct {
	Root, Out string
	Version   string
	// Platforms limits what is built; empty: all.
	Platforms []string
	// Repository is the name in front of the images' own; empty: the one of Push, or the project's. Push is where they are pushed to.
	Repository, Push string
	// Key signs; Keyless signs as who runs this, by cosign. What is pushed is signed by one of them, unless it is to be Unsigned.
	Key               string
	Password          []byte
	Keyless, Unsigned bool

	Builder, Invocation string
	Dirty               bool
}

// release is one that is being built.
type release struct {
	Options
	source  Source
	began   time.Time
	license []byte
	builder *build.Builder
	// kubectlBytes is how large kubectl-refit may be on each platform.
	kubectlBytes int64
	// sums are the digests of the files, written are their names in the order in which they were written.
	sums    map[string]string
	written []string
	images  []image
	// chartFile is the packaged chart.
	chartFile string
	// cosign signs in the registry; nil without Push, or Unsigned.
	cosign *cosign.Cosign
}

// image is one that has been built.
type image struct {
	name   string
	index  v1.ImageIndex
	digest v1.Hash
	// sboms are the files with its bills of materials.
	sboms []string
}

// Run builds a release.
func Run(ctx context.Context, options Options) error {
	r, err := prepare(ctx, options)
	if err != nil {
		return err
	}
	var signer *signing.Signer
	if r.Key != "" { // before the work, since the password may be wrong
		if signer, err = signing.NewSigner(r.Key, r.Password); err != nil {
			return err
		}
	}
	if r.Keyless || r.Push != "" && !r.Unsigned {
		if r.cosign, err = cosign.Build(ctx, r.Root, cosign.Key{Path: r.Key, Password: r.Password}); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"images and programs of nodes", r.nodes},
		{"kubectl-refit", r.kubectl},
		{"chart", r.chart},
		{"krew manifest", r.krew},
		{"changes", r.changes},
		{"checksums and provenance", func(context.Context) error { return r.attest() }},
		{"signatures", func(ctx context.Context) error { return errors.Join(r.sign(signer), r.signKeyless(ctx)) }},
		{"push", r.push},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("[%6.1fs] %s\n", time.Since(r.began).Seconds(), step.name)
	}
	fmt.Printf("%s %s: %d files in %s\n", r.Version, r.source.Commit, len(r.written), r.Out)
	return nil
}

func prepare(ctx context.Context, options Options) (*release, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	r := &release{Options: options, began: time.Now(), kubectlBytes: maxKubectl, sums: map[string]string{}}
	var err error
	if r.Root, err = filepath.Abs(r.Root); err != nil {
		return nil, err
	}
	if r.source, err = source(ctx, r.Root, r.Dirty); err != nil {
		return nil, err
	}
	if r.Version, err = version(r.Root, r.Version, r.source.Commit); err != nil {
		return nil, err
	}
	if r.Out == "" {
		r.Out = filepath.Join(r.Root, "dist", "release")
	}
	if err := errors.Join(os.RemoveAll(r.Out), os.MkdirAll(r.Out, 0o755)); err != nil {
		return nil, err
	}
	if r.license, err = os.ReadFile(filepath.Join(r.Root, "LICENSE")); err != nil {
		return nil, err
	}
	roots, err := certificates()
	if err != nil {
		return nil, err
	}
	r.builder = &build.Builder{
		Version: r.Version, Binaries: filepath.Join(r.Root, "dist", "release-programs"), Created: r.source.Created,
		RootUser: []string{"refit-daemon"}, Certificates: roots,
		// What else would change the programs.
		Environment: []string{"GOTOOLCHAIN=" + r.source.Toolchain, "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0"},
		Labels: map[string]string{
			"org.opencontainers.image.revision":      r.source.Commit,
			"org.opencontainers.image.created":       r.source.Created.Format(time.RFC3339),
			"org.opencontainers.image.url":           "https://github.com/refit-project/refit",
			"org.opencontainers.image.documentation": "https://github.com/refit-project/refit/tree/" + r.Version + "/docs",
			"org.opencontainers.image.vendor":        "The Refit authors",
			"org.opencontainers.image.description":   "Repairs running Kubernetes pods in place",
		},
	}
	return r, nil
}

// write adds a file to the release.
func (r *release) write(name string, content []byte) error {
	if _, twice := r.sums[name]; twice {
		return fmt.Errorf("two files are called %s", name)
	}
	sum := sha256.Sum256(content)
	r.sums[name] = hex.EncodeToString(sum[:])
	r.written = append(r.written, name)
	return os.WriteFile(filepath.Join(r.Out, name), content, 0o644)
}

// add adds a file that is in the folder already.
func (r *release) add(name string) error {
	content, err := os.ReadFile(filepath.Join(r.Out, name))
	if err != nil {
		return err
	}
	return r.write(name, content)
}

// attest writes the checksums of all files, and the statement of how they were built.
func (r *release) attest() error {
	statement := provenance.Build{
		Version: r.Version, Commit: r.source.Commit, Platforms: r.only(userPlatforms), GoVersion: r.source.Toolchain,
		Flags: append(append([]string{"CGO_ENABLED=0"}, build.Flags...), r.builder.LinkerFlags()), Builder: r.Builder, Invocation: r.Invocation,
	}
	var names strings.Builder
	for _, image := range r.images {
		statement.Subjects = append(statement.Subjects, provenance.Subject{Name: r.Repository + "/" + image.name, SHA256: image.digest.Hex})
		fmt.Fprintf(&names, "%s/%s:%s@%s\n", r.Repository, image.name, r.Version, image.digest)
	}
	if err := r.write(imagesFile, []byte(names.String())); err != nil {
		return err
	}
	for _, name := range r.written {
		statement.Subjects = append(statement.Subjects, provenance.Subject{Name: name, SHA256: r.sums[name]})
	}
	text, err := provenance.Statement(statement)
	if err != nil {
		return err
	}
	if err := r.write(provenanceFile, text); err != nil {
		return err
	}
	var sums strings.Builder
	for _, name := range r.written {
		fmt.Fprintf(&sums, "%s  %s\n", r.sums[name], name)
	}
	return os.WriteFile(filepath.Join(r.Out, sumsFile), []byte(sums.String()), 0o644)
}

// sign signs the checksums, and so everything, and the provenance in an envelope for programs that expect one.
func (r *release) sign(signer *signing.Signer) error {
	if signer == nil {
		return nil
	}
	sums, err := os.ReadFile(filepath.Join(r.Out, sumsFile))
	if err != nil {
		return err
	}
	signed, err := signer.Sign(sums)
	if err != nil {
		return err
	}
	statement, err := os.ReadFile(filepath.Join(r.Out, provenanceFile))
	if err != nil {
		return err
	}
	envelope, err := signer.Envelope(statement, provenance.PayloadType)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(r.Out, signatureFile), signed, 0o644),
		os.WriteFile(filepath.Join(r.Out, envelopeFile), envelope, 0o644),
	)
}

// signKeyless signs the checksums as who runs this.
func (r *release) signKeyless(ctx context.Context) error {
	if !r.Keyless {
		return nil
	}
	return r.cosign.SignFile(ctx, filepath.Join(r.Out, sumsFile), filepath.Join(r.Out, bundleFile))
}
