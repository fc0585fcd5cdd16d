// Package install puts Refit on a cluster as a user does, with images of one's own: by kubectl apply of the manifests in deploy/, or
// by Helm and the chart. Either takes over what the other has installed.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/hack/timeout"
)

// Config says what to install where.
type Config struct {
	Root string // of the checkout
	// Kubectl is the program; it finds the cluster by KUBECONFIG.
	Kubectl string
	// Images are full names whose last part before the tag is the program's, as REPOSITORY/refit-daemon:TAG. For
	// programs without one the manifests' own names stay.
	Images []string
}

// folders of deploy, in the order in which they are applied.
var folders = []string{"crd", "manager", "daemonset", "pull-secrets"}

// Pushed reads the names of the images that hack/images.sh has pushed; none if it has pushed nothing.
func Pushed(root string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(root, "dist", "images", "pushed"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find images: %w", err)
	}
	return strings.Fields(string(content)), nil
}

// Apply installs and waits until everything works, the webhooks included.
func Apply(ctx context.Context, config Config) error {
	// The template of a Job cannot be changed; one of an earlier installation has done its work.
	if err := config.kubectl(ctx, nil, "delete", "job", "refit-certificates", "--namespace=refit-system", "--ignore-not-found"); err != nil {
		return err
	}
	// The Job of deploy/manager writes the certificate authority into the webhook configurations that exist.
	wanted := slices.Insert(slices.Clone(folders), 1, "hold-webhook")
	if served, err := output(ctx, config.Kubectl, nil, "get", "--raw", "/apis/admissionregistration.k8s.io/v1"); err != nil {
		return err
	} else if strings.Contains(served, `"MutatingAdmissionPolicy"`) { // not before Kubernetes 1.36
		wanted = append(slices.Clone(folders), "hold")
	}
	for _, folder := range wanted {
		manifests, err := config.manifests(folder)
		if err != nil {
			return err
		}
		if err := config.kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
			return fmt.Errorf("apply deploy/%s: %w", folder, err)
		}
	}
	for _, wait := range [][]string{
		{"rollout", "status", "--namespace=refit-system", "deployment/refit-manager", timeoutFlag(3 * time.Minute)},
		{"rollout", "status", "--namespace=refit-system", "daemonset/refit-daemon", timeoutFlag(3 * time.Minute)},
		{"wait", "mutatingwebhookconfiguration/refit-manager", "--for=jsonpath={.webhooks[0].clientConfig.caBundle}", timeoutFlag(time.Minute)},
	} {
		if err := config.kubectl(ctx, nil, wait...); err != nil {
			return err
		}
	}
	return nil
}

func timeoutFlag(limit time.Duration) string { return "--timeout=" + timeout.Scaled(limit).String() }

// manifests of one folder as one stream.
func (c Config) manifests(folder string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(c.Root, "deploy", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no manifests in deploy/%s: %w", folder, errors.Join(err, fs.ErrNotExist))
	}
	slices.Sort(files)
	var stream bytes.Buffer
	for _, file := range files {
		content, err := c.Manifest(filepath.Join(folder, filepath.Base(file)))
		if err != nil {
			return nil, err
		}
		stream.WriteString("---\n")
		stream.Write(content)
	}
	return stream.Bytes(), nil
}

// Manifest reads a file below deploy/ and puts the names of our images into it.
func (c Config) Manifest(name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(c.Root, "deploy", name))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return c.withImages(content), nil
}

var imageLine = regexp.MustCompile(`(?m)^(\s*(?:- )?image:\s*)(?:\S*/)?([a-z0-9-]+):[^/\s]+$`)

func (c Config) withImages(manifest []byte) []byte {
	return imageLine.ReplaceAllFunc(manifest, func(line []byte) []byte {
		parts := imageLine.FindSubmatch(line)
		for _, image := range c.Images {
			if strings.Contains(image, "/"+string(parts[2])+":") {
				return append(slices.Clone(parts[1]), image...)
			}
		}
		return line
	})
}

func (c Config) kubectl(ctx context.Context, stdin []byte, args ...string) error {
	return run(ctx, c.Kubectl, stdin, args...)
}

func run(ctx context.Context, program string, stdin []byte, args ...string) error {
	_, err := output(ctx, program, stdin, args...)
	return err
}

// output is what a program says.
func output(ctx context.Context, program string, stdin []byte, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	if stdin != nil {
		command.Stdin = bytes.NewReader(stdin)
	}
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(out), nil
}
