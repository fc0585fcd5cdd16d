package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/refit-project/refit/hack/images/oci"
	"github.com/refit-project/refit/test/cluster/baseimage"
)

// PushImages fills the registry at an address with what every cluster has. What it holds already is not sent again.
func (f Folders) PushImages(ctx context.Context, registry string) error {
	busybox, err := firstFile(f.Tools, "usr/bin/busybox", "bin/busybox")
	if err != nil {
		return err
	}
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	images, err := baseimage.Build(baseimage.Sources{
		Busybox:  busybox,
		Applets:  slices.Collect(strings.FieldsSeq(string(applets))),
		Nginx:    f.Nginx,
		Pause:    filepath.Join(f.Cluster, "pause"),
		Platform: "linux/" + runtime.GOARCH,
	})
	if err != nil {
		return err
	}
	for _, image := range images {
		target, err := oci.Target(image.Name, registry)
		if err != nil {
			return fmt.Errorf("push %s: %w", image.Name, err)
		}
		if err := remote.Write(target, image.Image, remote.WithContext(ctx)); err != nil {
			return fmt.Errorf("push %s: %w", target, err)
		}
	}
	return nil
}

func firstFile(root string, candidates ...string) (string, error) {
	for _, candidate := range candidates {
		path := filepath.Join(root, candidate)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("none of %s in %s", strings.Join(candidates, ", "), root)
}
