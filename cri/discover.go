package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoSocket means that no runtime socket is there now. It may come: wait and look again.
var ErrNoSocket = errors.New("no container runtime socket")

// DefaultRoots are the directories looked into: first where the daemon's manifests mount the host's
// run directory, then the places the distributions use.
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

// socketNames are tried under each root, in this order; it is kruise-daemon's, so that a node keeps
// its runtime when one daemon takes over from the other.
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

// Discover finds the endpoint for Config: explicit, a path or unix:///path, if given; else the
// first socket there is under the roots. Only the file is looked at, so a runtime that is down
// but left its socket is found; symbolic links are followed and kept in the answer, so that a
// socket replaced behind one is found again.
//
// ErrNoSocket lists what was tried. Any other error is a malformed explicit.
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
		// Something that is in the way is worth more words than something that is not there.
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
