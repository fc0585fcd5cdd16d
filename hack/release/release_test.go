package main

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/refit-project/refit/hack/images/build"
	"github.com/refit-project/refit/hack/release/signing"
)

// checkout makes a small one of a program of each kind, and returns its folder.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	program := "package main\n\nvar version string\n\nfunc main() { println(version) }\n"
	for name, content := range map[string]string{
		"go.mod":                    "module example.com/tool\n\ngo 1.26.0\n\ntoolchain go1.26.8\n",
		"LICENSE":                   "Apache",
		"CHANGELOG.md":              "# Changelog\n\n## [Unreleased]\n\n- news\n\n## [0.9.0] - 2026-01-01\n\n- old\n",
		"cmd/refit-daemon/main.go":  program,
		"cmd/kubectl-refit/main.go": program,
		"cmd/kubectl-refit/kubectl_complete-refit": "#!/bin/sh\n",
		"deploy/krew/refit.yaml.tmpl":              "version: {{.Version}}\n{{range .Platforms}}sha256: {{index $.SHA256 (printf \"kubectl-refit_%s_%s_%s.tar.gz\" $.Version .OS .Arch)}}\n{{end}}",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// unsigned is a release of a checkout, without the chart, which another module packages, and without signatures.
func unsigned(ctx context.Context, root, out string) error {
	roots, err := certificates()
	if err != nil {
		return err
	}
	r := &release{
		Options: Options{Root: root, Out: out, Version: "v1.2.3", Repository: "example.com/refit", Builder: "https://example.com/builder"},
		source:  Source{Commit: strings.Repeat("a", 40), Created: time.Unix(1_700_000_000, 0), Toolchain: "go1.26.8"},
		license: []byte("Apache"), kubectlBytes: maxKubectl, sums: map[string]string{},
		builder: &build.Builder{Version: "v1.2.3", Binaries: filepath.Join(root, "dist"), Created: time.Unix(1_700_000_000, 0), Certificates: roots},
	}
	return errors.Join(r.nodes(ctx), r.kubectl(ctx), r.krew(ctx), r.changes(ctx), r.attest())
}

// common is a release that tests copy: building one takes seconds. TestMain removes it.
var common struct {
	sync.Once
	folder string
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(common.folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// built returns a folder with a release of its own, signed if there is a signer.
func built(t *testing.T, signer *signing.Signer) string {
	t.Helper()
	common.Do(func() {
		if common.folder, common.err = os.MkdirTemp("", "refit-release-"); common.err == nil { //nolint:usetesting // more than one test uses it
			common.err = unsigned(t.Context(), checkout(t), common.folder)
		}
	})
	if common.err != nil {
		t.Fatal(common.err)
	}
	out := t.TempDir()
	if err := os.CopyFS(out, os.DirFS(common.folder)); err != nil {
		t.Fatal(err)
	}
	if err := (&release{Options: Options{Out: out}}).sign(signer); err != nil {
		t.Fatal(err)
	}
	return out
}

func keys(t *testing.T) (*signing.Signer, *signing.Verifier) {
	t.Helper()
	folder := t.TempDir()
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte("secret")))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"cosign.key": private, "cosign.pub": public} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := signing.NewSigner(filepath.Join(folder, "cosign.key"), []byte("wrong")); err == nil {
		t.Error("read a key with the wrong password")
	}
	signer, err := signing.NewSigner(filepath.Join(folder, "cosign.key"), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signing.NewVerifier(filepath.Join(folder, "cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

func TestTwoBuildsInTwoFoldersAreTheSame(t *testing.T) {
	t.Parallel()
	first, err := os.ReadFile(filepath.Join(built(t, nil), sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := unsigned(t.Context(), checkout(t), other); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(other, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	for _, name := range []string{"refit-daemon_v1.2.3_image.tar", "refit-daemon_v1.2.3_linux_arm64_image.spdx.json", "kubectl-refit_v1.2.3_windows_amd64.tar.gz", krewFile, imagesFile, provenanceFile} {
		if !strings.Contains(string(first), "  "+name+"\n") {
			t.Errorf("no %s:\n%s", name, first)
		}
	}
}

func TestChangedByteFailsVerification(t *testing.T) {
	t.Parallel()
	signer, verifier := keys(t)
	out := built(t, signer)
	if count, err := Verify(out, verifier); err != nil || count < 15 {
		t.Fatalf("verified %d files: %v", count, err)
	}
	for _, name := range []string{"refit-daemon_v1.2.3_image.tar", changesFile, provenanceFile, sumsFile, signatureFile, envelopeFile} {
		path := filepath.Join(out, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(content)
		changed[len(changed)/2] ^= 1
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(out, verifier); err == nil {
			t.Errorf("%s was changed and verified", name)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, other := keys(t)
	if _, err := Verify(out, other); err == nil {
		t.Error("verified with another key")
	}
}

func TestFileThatIsAddedOrMissingFailsVerification(t *testing.T) {
	t.Parallel()
	out := built(t, nil)
	if err := os.WriteFile(filepath.Join(out, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(out, changesFile)); err != nil {
		t.Fatal(err)
	}
	_, err := Verify(out, nil)
	if err == nil || !strings.Contains(err.Error(), "more is not of the release") || !strings.Contains(err.Error(), changesFile+" is missing") {
		t.Errorf("err = %v", err)
	}
}

// TestOpensslVerifies is what docs/release.md tells those to do who have no cosign.
func TestOpensslVerifies(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	signer, _ := keys(t)
	out := built(t, signer)
	key, err := signer.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "sh", "-c",
		"sha256sum --check --quiet SHA256SUMS && base64 -d SHA256SUMS.sig >sig && openssl dgst -sha256 -verify key -signature sig SHA256SUMS")
	command.Dir = out
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

func TestCertificatesOfTheImagesAreRoots(t *testing.T) {
	t.Parallel()
	text, err := certificates()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !certificate.IsCA {
			t.Errorf("%s is no authority", certificate.Subject)
		}
		count++
	}
	if count < 80 {
		t.Errorf("only %d certificates", count)
	}
}

func TestVersionsOfReleases(t *testing.T) {
	t.Parallel()
	for given, ok := range map[string]bool{"v1.2.3": true, "v1.2.3-rc.1": true, "1.2.3": false, "v1.2": false, "v1.2.3\n": false, "latest": false} {
		if _, err := version("", given, ""); (err == nil) != ok {
			t.Errorf("%q: %v", given, err)
		}
	}
	got, err := version(filepath.Join("..", ".."), "", strings.Repeat("0123456789", 4))
	if err != nil || !releaseVersion.MatchString(got) || !strings.HasSuffix(got, "-dev.g012345678901") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestChangesOfAVersion(t *testing.T) {
	t.Parallel()
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.0.0] - 2026-01-01\n\n- old\n"
	for version, want := range map[string]string{"v1.0.0": "- old\n", "v1.1.0": "- new\n"} {
		if got, err := changes(changelog, version); err != nil || got != want {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

func TestCheckoutWithChangesIsRefused(t *testing.T) {
	t.Parallel()
	root := checkout(t)
	git := func(args ...string) {
		command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	if got, err := source(t.Context(), root, false); err != nil || got.Toolchain != "go1.26.8" || len(got.Commit) != 40 {
		t.Fatalf("source = %+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(root, "new.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source(t.Context(), root, false); err == nil || !strings.Contains(err.Error(), "new.go") {
		t.Errorf("err = %v", err)
	}
}
