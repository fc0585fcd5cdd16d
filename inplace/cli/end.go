package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kubelet"
)

// errSuperseded means that the pod no longer has what the command has requested.
var errSuperseded = errors.New("superseded by another change of the pod")

// superseded returns an error if the pod does not have what was requested.
func (u *updater) superseded() error {
	if now := change.Different(plan.Template(u.pod), u.asked); len(now) > 0 {
		return fmt.Errorf("%w: %s", errSuperseded, strings.Join(now, "; "))
	}
	return nil
}

// unwritten reports whether nothing of the update has been written to the pod's spec and metadata yet.
func (u *updater) unwritten() bool {
	return len(change.Different(plan.Template(u.pod), u.asked)) == len(change.Different(plan.Template(u.before), u.asked))
}

// unfinished returns the error of a command that ends before its update: what it waited for, and why that did not happen.
func (u *updater) unfinished(ctx context.Context) error {
	last := cmp.Or(u.Output.Last(), "nothing")
	if u.hindrance != "" && !strings.HasPrefix(last, u.hindrance) {
		last += "; before that: " + u.hindrance
	}
	return fmt.Errorf("%w; last: %s", console.Cause(ctx), last)
}

// withdrawLimit limits how long an ended command tries to withdraw what it has not begun.
const withdrawLimit = 10 * time.Second

// withdraw removes what the command has recorded if nothing of it has been written to the pod, and makes the pod ready
// again, because nobody would continue the update. It returns the error with which the command ends.
func (u *updater) withdraw(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawLimit)
	defer cancel()
	if readErr := u.read(ctx); readErr != nil {
		return fmt.Errorf("%w; the pod could not be read again: %w", err, readErr)
	}
	if !u.unwritten() {
		if errors.Is(err, errSuperseded) {
			return err
		}
		return fmt.Errorf("%w; the update stays recorded on the pod%s, and the same command goes on with it", err, u.out())
	}
	taken, writeErr := u.write(ctx, func(pod *corev1.Pod) (*inplace.Step, error) { return inplace.Withdraw(pod, u.asked, time.Now()) })
	switch {
	case writeErr != nil:
		return fmt.Errorf("%w; it stays recorded on the pod%s, since it could not be taken back: %w", err, u.out(), writeErr)
	case taken:
		return fmt.Errorf("%w; nothing of it has been written, and it has been taken back%s", err, u.out())
	default:
		return err
	}
}

func (u *updater) out() string {
	if gate.Closed(u.pod) == nil {
		return ""
	}
	return ", the pod is out of its Services"
}

// observePod stores a pod that has been read, and updates how long the pod has not been ready.
func (u *updater) observePod(pod *corev1.Pod) {
	u.pod = pod
	now := time.Now()
	if !kubelet.Ready(pod) {
		if u.down.IsZero() {
			u.down = now
		}
		return
	}
	if u.ready.IsZero() {
		u.ready = now
	}
	if !u.down.IsZero() {
		u.unused += now.Sub(u.down)
	}
	u.down = time.Time{}
}

// summary prints what has changed and what has not.
func (u *updater) summary() {
	u.Output.Say("done")
	same := "changed"
	if u.before.UID == u.pod.UID && u.before.Status.PodIP == u.pod.Status.PodIP {
		same = "as before"
	}
	u.Output.Print("  UID %s and IP %s: %s\n", u.pod.UID, u.pod.Status.PodIP, same)
	for _, container := range change.Running(plan.Template(u.pod)) {
		status, was := kubelet.StatusOf(u.pod, container.Name), kubelet.StatusOf(u.before, container.Name)
		switch {
		case status == nil || was == nil:
		case was.ContainerID == status.ContainerID && u.resized(container):
			u.Output.Print("  container %s: %s, not restarted\n", status.Name, describe(&container.Resources))
		case was.ContainerID == status.ContainerID:
			u.Output.Print("  container %s: not touched\n", status.Name)
		default:
			u.Output.Print("  container %s: %s, restarts %d -> %d%s\n", status.Name, container.Image, was.RestartCount, status.RestartCount, downtime(was, status))
		}
	}
	u.Output.Print("  %s\n", u.readiness())
}

// resized reports whether a container has other resources than before the update.
func (u *updater) resized(container *corev1.Container) bool {
	was := plan.Find(&u.before.Spec, container.Name)
	return was != nil && describe(&was.Resources) != describe(&container.Resources)
}

// downtime returns how long a container did not run, in whole seconds because kubelet reports times in seconds. It is
// empty if kubelet does not report the end of the previous instance.
func downtime(was, is *corev1.ContainerStatus) string {
	ended := is.LastTerminationState.Terminated
	if ended == nil || ended.ContainerID != was.ContainerID || is.State.Running == nil || ended.FinishedAt.IsZero() {
		return ""
	}
	return fmt.Sprintf(", down for about %.0f s", max(0, is.State.Running.StartedAt.Sub(ended.FinishedAt.Time).Seconds()))
}

func (u *updater) readiness() string {
	const precision = 100 * time.Millisecond
	switch {
	case kubelet.Ready(u.before):
		return fmt.Sprintf("not ready for %s", u.unused.Round(precision))
	case u.ready.IsZero():
		return "not ready before and during the update"
	default:
		return fmt.Sprintf("not ready before the update, ready %s after it began", u.ready.Sub(u.began).Round(precision))
	}
}
