package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Logs is the folder of the logs of Refit's programs in the folder of a run.
const Logs = "logs"

// LinkLogs links the logs of the containers of a namespace into the folder of a run, from the folder in which the kubelet of a node
// keeps the logs of pods. kubelet removes them with the pod; a link also gets what is written later. Only what a container writes
// until kubelet first rotates its log, at 10 MiB, is kept.
func LinkLogs(folder, node, pods, namespace string) error {
	logs, err := filepath.Glob(filepath.Join(pods, namespace+"_*", "*", "*.log"))
	errs := []error{err, os.MkdirAll(filepath.Join(folder, Logs), 0o755)}
	for _, log := range logs {
		inPods, err := filepath.Rel(pods, log)
		if err != nil {
			return err
		}
		// NAMESPACE_POD_UID/CONTAINER/RESTARTS.log
		pod, inPod, _ := strings.Cut(strings.TrimPrefix(inPods, namespace+"_"), string(filepath.Separator))
		name := strings.Join([]string{node, pod, strings.ReplaceAll(inPod, string(filepath.Separator), "_")}, "_")
		err = os.Link(log, filepath.Join(folder, Logs, name))
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) { // kept before, or removed meanwhile
			errs = append(errs, fmt.Errorf("keep log: %w", err))
		}
	}
	return errors.Join(errs...)
}
