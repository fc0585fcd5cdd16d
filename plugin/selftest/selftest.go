// Package selftest checks what the environment of the sidecar allows: which processes it can see and signal, what its role
// permits, whether a folder can be updated. Serverless platforms differ in this, and document little.
//
// It contains: the checks, and their summary. Reactions to a failed check must stay out.
package selftest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/signal"
)

// Check is the result of one check.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Needed means that the configuration needs it; other checks are for information.
	Needed bool   `json:"needed"`
	Detail string `json:"detail,omitempty"`
}

// Need is a permission that a plugin requires.
type Need struct {
	Verb string
	Of   ownpod.Reference
}

// Report has the results of all checks.
type Report []Check

// Entry returns the report as a result: a failure if something needed is missing.
func (r Report) Entry() result.Entry {
	var missing, absent []string
	for _, c := range r {
		said := c.Name
		if c.Detail != "" {
			said += ": " + c.Detail
		}
		switch {
		case c.OK:
		case c.Needed:
			missing = append(missing, said)
		default:
			absent = append(absent, said)
		}
	}
	entry := result.Entry{State: result.Succeeded, Message: "all that is configured can work here"}
	if len(missing) > 0 {
		entry.State, entry.Message = result.Failed, "missing: "+strings.Join(missing, "; ")
	}
	if len(absent) > 0 {
		entry.Message += " (not available, and not needed: " + strings.Join(absent, "; ") + ")"
	}
	entry.Message = foreign.Cut(entry.Message, result.MaxMessage)
	return entry
}

// Processes checks whether the processes of the pod's other containers can be seen, and which of them may be signalled. own
// is the name of the sidecar's container.
func Processes(ctx context.Context, fs *signal.FS, pod *corev1.Pod, own string, needed bool) Report {
	shared := Check{Name: "shared PID namespace", Needed: needed}
	if fs == nil {
		shared.Detail = "no proc file system"
		return Report{shared}
	}
	all, err := fs.Processes(ctx)
	if err != nil {
		shared.Detail = err.Error()
		return Report{shared}
	}
	sandbox := slices.ContainsFunc(all, func(p signal.Process) bool { return p.PID == 1 && p.Sandbox })
	shared.OK = os.Getpid() != 1 && sandbox
	if !shared.OK {
		shared.Detail = "set shareProcessNamespace; until then files are updated and probes run, but nothing is signalled"
		return Report{shared}
	}
	report := Report{shared}
	if pod == nil {
		return report
	}
	// If the container of at least one process is hidden, a container without processes proves nothing.
	hidden := slices.ContainsFunc(all, func(p signal.Process) bool {
		return p.Container == "" && !p.Sandbox && p.PID != os.Getpid()
	})
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if s.Name == own || s.State.Running == nil {
			continue
		}
		check := Check{Name: "signal container " + s.Name, Needed: needed}
		switch err := signalling(ctx, fs, s); {
		case err == nil:
			check.OK = true
		case errors.Is(err, signal.ErrNotFound) && !hidden:
			check.OK, check.Detail = true, "it has no process at the moment"
		case errors.Is(err, signal.ErrNotFound):
			check.Detail = "no process is known to be its own: its cgroup cannot be seen"
		default:
			check.Detail = err.Error()
		}
		report = append(report, check)
	}
	return report
}

// signalling checks whether a container's first process may be signalled, without sending a signal.
func signalling(ctx context.Context, fs *signal.FS, s corev1.ContainerStatus) error {
	id, err := identity.ParseContainerID(s.ContainerID)
	if err != nil {
		return err
	}
	found, err := fs.Find(ctx, signal.Selector{Container: id, Choice: signal.Oldest})
	if err != nil {
		return err
	}
	return fs.Check(found[0])
}

// Access checks for each need whether the role allows it.
func Access(ctx context.Context, client *ownpod.Client, needs []Need) Report {
	var report Report
	seen := map[Need]bool{}
	for _, n := range needs {
		if seen[n] {
			continue
		}
		seen[n] = true
		c := Check{Name: "may " + n.Verb + " " + n.Of.String(), Needed: true}
		if client == nil {
			c.Detail = "no service account"
			report = append(report, c)
			continue
		}
		ok, err := client.May(ctx, n.Verb, n.Of)
		c.OK = ok
		if err != nil {
			c.Detail = err.Error()
		}
		report = append(report, c)
	}
	return report
}

// Volume tries the operations of an update in a folder: write, sync, and rename over an existing file.
func Volume(dir string) Report {
	writable := Check{Name: "write " + dir, Needed: true}
	atomic := Check{Name: "rename in " + dir, Needed: true}
	err := tryRename(dir, &writable.OK)
	atomic.OK = err == nil
	switch {
	case err != nil && !writable.OK:
		writable.Detail = err.Error()
	case err != nil:
		atomic.Detail = err.Error()
	}
	return Report{writable, atomic}
}

func tryRename(dir string, written *bool) (err error) {
	folder, err := os.MkdirTemp(dir, "..refit-selftest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	old, fresh := filepath.Join(folder, "old"), filepath.Join(folder, "new")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		return err
	}
	if err := writeSynced(fresh); err != nil {
		return err
	}
	*written = true
	before, err := os.Stat(fresh)
	if err != nil {
		return err
	}
	if err := os.Rename(fresh, old); err != nil {
		return err
	}
	after, err := os.Stat(old)
	if err != nil {
		return err
	}
	if !os.SameFile(before, after) {
		return errors.New("the renamed file is another one: the file system copies instead of renaming")
	}
	return nil
}

func writeSynced(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString("new")
	return errors.Join(err, f.Sync(), f.Close())
}
