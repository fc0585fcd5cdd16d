package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/identity"
)

// story is what happened, each moment from the record that is nearest to it.
type story struct {
	before, after *corev1.Pod
	request       *v1beta1.ContainerRecreateRequest

	created, admitted, stopCalled, exited, running, ready, completed time.Time
	// exitedBy and runningBy name the records of the two.
	exitedBy, runningBy string
}

// lookUp fills in what others have recorded.
func (s *scene) lookUp(ctx context.Context, told *story) error {
	admitted, err := time.Parse(time.RFC3339Nano, told.request.Annotations[v1beta1.AnnotationAdmittedAt])
	if err != nil {
		return fmt.Errorf("read when the request was admitted: %w", err)
	}
	told.admitted = admitted
	log, err := s.daemonLog(ctx)
	if err != nil {
		return err
	}
	if told.stopCalled, err = logged(log, "stopping container", s.request.Name); err != nil {
		return err
	}
	if socket := s.socket(); socket != "" {
		return told.askRuntime(ctx, socket)
	}
	told.exitedBy, told.runningBy = "log of refit-daemon: the stop returned", "pod status, whole seconds"
	told.running = container(told.after, "app").State.Running.StartedAt.Time
	told.exited, err = logged(log, "stopped container", s.request.Name)
	return err
}

// askRuntime reads the end of the old instance and the start of the new one to the nanosecond.
func (s *story) askRuntime(ctx context.Context, socket string) error {
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
	old, errOld := status(s.before)
	current, errNew := status(s.after)
	s.exited, s.running = old.FinishedAt, current.StartedAt
	s.exitedBy, s.runningBy = "containerd, through CRI", "containerd, through CRI"
	return errors.Join(errOld, errNew)
}

// daemonLog is the latest of the daemon on the pod's node.
func (s *scene) daemonLog(ctx context.Context) (string, error) {
	name, err := s.kubectlOutput(ctx, "get", "pods", "--namespace=refit-system", "--selector=app.kubernetes.io/name=refit-daemon",
		"--field-selector=spec.nodeName="+s.pod.Spec.NodeName, "--output=name")
	if err != nil {
		return "", err
	}
	return s.kubectlOutput(ctx, "logs", "--namespace=refit-system", strings.TrimSpace(name), "--since=2m")
}

func (s *scene) kubectlOutput(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, s.Kubectl, args...).Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
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

func (s *story) print(out io.Writer) {
	app, was := container(s.after, "app"), container(s.before, "app")
	moments := []moment{
		{s.created, "created", "this program, as it sent the request"},
		{s.admitted, "admitted", "annotation refit.dev/admitted-at, of refit-manager"},
		{s.stopCalled, "stop called", "log of refit-daemon on " + s.after.Spec.NodeName},
		{s.exited, "exited", s.exitedBy},
		{s.running, "new container running", s.runningBy},
		{s.ready, "ready", "pod status, as it reached this program's watch"},
		{s.completed, "completed", "request status, as it reached this program's watch"},
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	fmt.Fprintln(out, "\n  since creation   what                     recorded by")
	for _, m := range moments {
		fmt.Fprintf(out, "  %11.3f ms   %-22s   %s\n", float64(m.at.Sub(s.created).Microseconds())/1000, m.what, m.recorded)
	}
	fmt.Fprintf(out, "\n  container app: %s -> %s, restartCount %d -> %d\n", short(was), short(app), was.RestartCount, app.RestartCount)
	fmt.Fprintf(out, "  container log: %s\n", same(short(container(s.before, "log")), short(container(s.after, "log"))))
	fmt.Fprintf(out, "  pod IP:        %s\n", same(s.before.Status.PodIP, s.after.Status.PodIP))
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
