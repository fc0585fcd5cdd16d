package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoSocket means that there is no runtime socket yet. Wait and try again.
var ErrNoSocket = errors.New("no container runtime socket")

// DefaultRoots returns the directories to search: first where the daemon's manifests mount the host's run directory, then
// the directories that distributions use.
func DefaultRoots() []string {
	return []string{
		"/hostvarrun",
		"/run",
		"/var/run",
		"/run/k3s", // k3s, RKE2
		"/run/k0s",
		"/var/snap/microk8s/common/run",
	}
}

// socketNames returns the names that are tried in each root, in kruise-daemon's order, so that a node keeps its runtime
// when one daemon replaces the other.
func socketNames() []string {
	return []string{
		"containerd.sock",
		"containerd/containerd.sock",
		"crio.sock",
		"crio/crio.sock",
		"cri-dockerd.sock",
		"cri-dockerd/cri-dockerd.sock",
	}
}

// Discover returns the endpoint for Config: explicit, a path or unix:///path, if given; else the first existing socket in
// the roots. It only checks the file, so the socket of a stopped runtime is found. Symbolic links are followed but not
// resolved in the result, so that a replaced target is found again.
//
// ErrNoSocket lists the paths that were tried. Any other error means that explicit is malformed.
func Discover(explicit string, roots []string) (endpoint string, err error) {
	var tried []string
	if explicit != "" {
		path, err := socketPath(explicit)
		if err != nil {
			return "", err
		}
		tried = append(tried, path)
	} else {
		for _, root := range roots {
			for _, name := range socketNames() {
				tried = append(tried, filepath.Join(root, name))
			}
		}
	}
	var report []string
	for _, path := range tried {
		err := checkSocket(path)
		if err == nil {
			return "unix://" + path, nil
		}
		// An obstacle is worth more detail than a missing file.
		if errors.Is(err, fs.ErrNotExist) {
			report = append(report, path)
		} else {
			report = append(report, fmt.Sprintf("%s (%v)", path, err))
		}
	}
	return "", fmt.Errorf("%w: tried %s", ErrNoSocket, strings.Join(report, ", "))
}

func checkSocket(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if to, readErr := os.Readlink(path); readErr == nil {
			return fmt.Errorf("link to %s, which is not there", to)
		}
		return err
	}
	var pathErr *fs.PathError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("not a socket but %s", info.Mode())
	}
	return nil
}
