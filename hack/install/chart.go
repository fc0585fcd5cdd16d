package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	release   = "refit"
	namespace = "refit-system"
)

// Chart packages the chart and installs it by Helm, or upgrades what is installed, and waits until everything works. What Apply
// has installed is taken over. Helm is the program.
func Chart(ctx context.Context, config Config, helm string) error {
	values, err := Values(config.Images)
	if err != nil {
		return err
	}
	folder := filepath.Join(config.Root, "dist", "chart")
	if err := os.RemoveAll(folder); err != nil { // a package of another version
		return err
	}
	if err := run(ctx, helm, nil, "package", filepath.Join(config.Root, "deploy", "chart"), "--destination="+folder); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
	if err != nil {
		return err
	}
	if len(packages) != 1 {
		return fmt.Errorf("helm package has made %q, want one package", packages)
	}
	if err := uninstallPending(ctx, helm); err != nil {
		return err
	}
	args := []string{
		"upgrade", release, packages[0], "--install", "--namespace=" + namespace, "--create-namespace", "--take-ownership", "--server-side=true", "--force-conflicts",
		"--wait", timeoutFlag(4 * time.Minute),
	}
	return run(ctx, helm, nil, append(args, values...)...)
}

// uninstallPending removes a release whose installation was interrupted, which Helm would wait for.
func uninstallPending(ctx context.Context, helm string) error {
	pending, err := output(ctx, helm, nil, "list", "--pending", "--short", "--namespace="+namespace)
	if err != nil || !strings.Contains(pending, release) {
		return err
	}
	return run(ctx, helm, nil, "uninstall", release, "--namespace="+namespace, "--wait", timeoutFlag(3*time.Minute))
}

// Values are flags of helm that name the images of the programs that the chart installs.
func Values(images []string) (flags []string, err error) {
	for _, image := range images {
		name, digest, pinned := strings.Cut(image, "@")
		i, j := strings.LastIndexByte(name, '/'), strings.LastIndexByte(name, ':')
		if i < 0 || j < i {
			return nil, fmt.Errorf("image %s: want REPOSITORY/NAME:TAG or REPOSITORY/NAME:TAG@DIGEST", image)
		}
		program, ours := strings.CutPrefix(name[i+1:j], "refit-")
		if !ours || program != "daemon" && program != "manager" {
			continue
		}
		flags = append(flags, "--set-string="+program+".image.repository="+name[:j], "--set-string="+program+".image.tag="+name[j+1:])
		if pinned {
			flags = append(flags, "--set-string="+program+".image.digest="+digest)
		}
	}
	return flags, nil
}
