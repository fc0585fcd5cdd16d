package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
)

// timeline is what happened, each moment from the record that is nearest to it.
type timeline struct {
	before, after *corev1.Pod
	request       *v1beta1.ContainerRecreateRequest

	admitted, stopCalled, exited, running, ready, completed time.Time
	// exitedBy and runningBy name the records of the two.
	exitedBy, runningBy string
}

// lookUp fills in what others have recorded.
func (d *demo) lookUp(ctx context.Context, recorded *timeline) error {
	admitted, err := time.Parse(time.RFC3339Nano, recorded.request.Annotations[v1beta1.AnnotationAdmittedAt])
	if err != nil {
		return fmt.Errorf("read when the request was admitted: %w", err)
	}
	recorded.admitted = admitted
	log, err := d.daemonLog(ctx)
	if err != nil {
		return err
	}
	if recorded.stopCalled, err = logged(log, "stopping container", recorded.request.Name); err != nil {
		return err
	}
	if socket := d.socket(); socket != "" {
		return recorded.askRuntime(ctx, socket)
	}
	recorded.exitedBy, recorded.runningBy = "log of refit-daemon: the stop returned", "pod status, whole seconds"
	recorded.running = container(recorded.after, "app").State.Running.StartedAt.Time
	recorded.exited, err = logged(log, "stopped container", recorded.request.Name)
	return err
}

// askRuntime reads the end of the old instance and the start of the new one to the nanosecond.
func (t *timeline) askRuntime(ctx context.Context, socket string) error {
	runtime, err := cri.New(cri.Config{Endpoint: socket})
	if err != nil {
		return err
	}
	defer func() { _ = runtime.Close() }()
	status := func(pod *corev1.Pod) (cri.ContainerStatus, error) {
		id, err := identity.ParseContainerID(container(pod, "app").ContainerID)
		if err != nil {
			return cri.ContainerStatus{}, err
		}
		return runtime.ContainerStatus(ctx, id.ID)
	}
	old, errOld := status(t.before)
	current, errNew := status(t.after)
	t.exited, t.running = old.FinishedAt, current.StartedAt
	t.exitedBy, t.runningBy = "containerd, through CRI", "containerd, through CRI"
	return errors.Join(errOld, errNew)
}

// daemonLog is the latest of the daemon on the pod's node.
func (d *demo) daemonLog(ctx context.Context) (string, error) {
	name, err := d.RunKubectl(ctx, "", "get", "pods", "--namespace=refit-system", "--selector=app.kubernetes.io/name=refit-daemon",
		"--field-selector=spec.nodeName="+d.pod.Spec.NodeName, "--output=name")
	if err != nil {
		return "", err
	}
	return d.RunKubectl(ctx, "", "logs", "--namespace=refit-system", strings.TrimSpace(name), "--since=2m")
}

var logLine = regexp.MustCompile(`^time=(\S+) .*msg="([^"]*)".* request=(\S+)`)

// logged is when the message was last logged about the request.
func logged(log, message, request string) (time.Time, error) {
	for _, line := range slices.Backward(strings.Split(log, "\n")) {
		fields := logLine.FindStringSubmatch(line)
		if fields != nil && fields[2] == message && fields[3] == request {
			return time.Parse(time.RFC3339Nano, fields[1])
		}
	}
	return time.Time{}, fmt.Errorf("refit-daemon has not logged %q for %s", message, request)
}

type moment struct {
	at             time.Time
	what, recorded string
}

func (t *timeline) print(out io.Writer) {
	app, was := container(t.after, "app"), container(t.before, "app")
	moments := []moment{
		{t.admitted, "admitted", "annotation refit.dev/admitted-at, of refit-manager"},
		{t.stopCalled, "stop called", "log of refit-daemon on " + t.after.Spec.NodeName},
		{t.exited, "exited", t.exitedBy},
		{t.running, "new container running", t.runningBy},
		{t.ready, "ready", "pod status, as it reached this program's watch"},
		{t.completed, "completed", "request status, as it reached this program's watch"},
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	fmt.Fprintln(out, "\n  since admission   what                     recorded by")
	for _, m := range moments {
		fmt.Fprintf(out, "  %12.3f ms   %-22s   %s\n", float64(m.at.Sub(t.admitted).Microseconds())/1000, m.what, m.recorded)
	}
	fmt.Fprintf(out, "\n  container app: %s -> %s, restartCount %d -> %d\n", short(was), short(app), was.RestartCount, app.RestartCount)
	fmt.Fprintf(out, "  container log: %s\n", same(short(container(t.before, "log")), short(container(t.after, "log"))))
	fmt.Fprintf(out, "  pod IP:        %s\n", same(t.before.Status.PodIP, t.after.Status.PodIP))
}

func same(before, after string) string {
	if before == after {
		return after + ", as before"
	}
	return before + " -> " + after
}

func short(status corev1.ContainerStatus) string {
	id, err := identity.ParseContainerID(status.ContainerID)
	if err != nil {
		return cmp.Or(status.ContainerID, "none")
	}
	return id.ID[:min(len(id.ID), 12)]
}
