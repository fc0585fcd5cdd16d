// Package cosign signs what lies in a registry with the program cosign, whose version tools/cosign/go.mod pins. Signatures and attestations are
// sigstore bundles, which lie beside the image as its referrers.
package cosign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Types of attestations.
const (
	SBOM       = "spdxjson"
	Provenance = "slsaprovenance1"
)

// Cosign is the program, with the identity that it signs as.
type Cosign struct {
	program  string
	identity []string // flags
	environ  []string
}

// Key is a private key, as `cosign generate-key-pair` makes it, with its password.
type Key struct {
	Path     string
	Password []byte
}

// Build builds the program of the checkout. Without a key it signs as who runs it: by a certificate for a token of the workflow (or of a person, in a
// browser), with an entry in the transparency log of sigstore. With a key there is no entry in a log.
func Build(ctx context.Context, root string, key Key) (*Cosign, error) {
	c := &Cosign{program: filepath.Join(root, "dist", "bin", "cosign"), identity: []string{"--yes"}, environ: os.Environ()}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", c.program, "github.com/sigstore/cosign/v3/cmd/cosign")
	build.Dir = filepath.Join(root, "tools", "cosign")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build cosign: %w: %s", err, said)
	}
	if key.Path == "" {
		return c, nil
	}
	c.identity = append(c.identity, "--key="+key.Path, "--use-signing-config=false", "--tlog-upload=false")
	c.environ = append(c.environ, "COSIGN_PASSWORD="+string(key.Password))
	if err := c.run(ctx, "public-key", "--key="+key.Path); err != nil { // before the work, since cosign does not read every key
		return nil, err
	}
	return c, nil
}

// Sign signs an image or a chart, which is named by its digest.
func (c *Cosign) Sign(ctx context.Context, reference string) error {
	return c.run(ctx, "sign", slices.Concat(c.identity, []string{reference})...)
}

// Attest attaches a signed statement about an image or a chart, whose predicate is in a file.
func (c *Cosign) Attest(ctx context.Context, reference, kind, predicate string) error {
	return c.run(ctx, "attest", slices.Concat(c.identity, []string{"--type=" + kind, "--predicate=" + predicate, reference})...)
}

// SignFile writes the signature of a file, with what is needed to verify it, to another file.
func (c *Cosign) SignFile(ctx context.Context, path, bundle string) error {
	return c.run(ctx, "sign-blob", slices.Concat(c.identity, []string{"--bundle=" + bundle, path})...)
}

func (c *Cosign) run(ctx context.Context, verb string, args ...string) error {
	command := exec.CommandContext(ctx, c.program, append([]string{verb}, args...)...)
	command.Env = c.environ
	if said, err := command.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("cosign %s %s: %w", verb, args[len(args)-1], err), errors.New(strings.TrimSpace(string(said))))
	}
	return nil
}
