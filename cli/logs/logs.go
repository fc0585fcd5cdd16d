// Package logs shows the log of a container across its restarts: the end of the log of the latest instance that has ended, as far
// as kubelet knows it, and the log of the current one.
package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kubelet"
)

// Open opens the log of a container of a pod.
type Open func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)

// Config selects the log.
type Config struct {
	API       client.WithWatch
	Open      Open
	Namespace string
	Container string // empty for the only one
	// Tail is how many lines of each instance are shown; negative for all.
	Tail int64
	// Since leaves out lines that are older; 0 for none. Timestamps begins each line with its time.
	Since      time.Duration
	Timestamps bool
	// Follow continues with new lines of the container, and with its next instances, until the pod has ended.
	Follow bool
	// Notes is where a gap in a followed log is explained.
	Notes io.Writer
}

// Run writes the log.
func Run(ctx context.Context, config Config, out io.Writer, name string) error {
	r := &reader{Config: config, out: out, key: client.ObjectKey{Namespace: config.Namespace, Name: name}}
	var pod corev1.Pod
	if err := r.API.Get(ctx, r.key, &pod); err != nil {
		return err
	}
	if err := r.choose(&pod); err != nil {
		return err
	}
	if err := r.previous(ctx, &pod); err != nil {
		return err
	}
	seen := ""
	for {
		status := r.status(&pod)
		switch {
		case status != nil && status.ContainerID != "" && status.ContainerID != seen:
			seen = status.ContainerID
			if err := r.present(ctx, status); err != nil {
				return err
			}
		case seen != "":
			if err := r.resume(ctx); err != nil {
				return err
			}
		case !r.Follow:
			return fmt.Errorf("container %s has not been started yet", r.Container)
		}
		if !r.Follow {
			return nil
		}
		next, err := r.next(ctx, seen)
		if err != nil || next == nil {
			return err
		}
		pod = *next
	}
}

type reader struct {
	Config
	out io.Writer
	key client.ObjectKey

	last       time.Time // of the last line of the instance, if it is followed
	ended      time.Time // when the last stream of the instance has ended, or was begun
	unreadable bool      // a note has said that the log cannot be read
}

// choose returns the container with the configured name, or the only one.
func (r *reader) choose(pod *corev1.Pod) error {
	var names []string
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		names = append(names, container.Name)
	}
	switch {
	case r.Container == "" && len(pod.Spec.Containers) == 1:
		r.Container = names[0]
	case r.Container == "":
		return fmt.Errorf("%w: pod %s has the containers %s; name one with --container", console.ErrUsage, pod.Name, strings.Join(names, ", "))
	case !slices.Contains(names, r.Container):
		return fmt.Errorf("%w: pod %s has no container %s; it has %s", console.ErrUsage, pod.Name, r.Container, strings.Join(names, ", "))
	}
	return nil
}

func (r *reader) status(pod *corev1.Pod) *corev1.ContainerStatus {
	return kubelet.StatusOf(pod, r.Container)
}

// previous writes the end of the log of the latest ended instance that kubelet reports, if there was one. It is the previous instance
// if there was one restart. After more of them the instances between it and the present one may have been removed, by a restart that
// skips kubelet's back-off; nothing in the pod says so.
func (r *reader) previous(ctx context.Context, pod *corev1.Pod) error {
	status := r.status(pod)
	if status == nil || status.RestartCount == 0 {
		return nil
	}
	last := status.LastTerminationState.Terminated
	if last == nil {
		fmt.Fprintf(r.out, "==> %s: the previous instance has been removed, and its log with it <==\n", r.Container)
		return nil
	}
	if last.ContainerID != "" && last.ContainerID == status.ContainerID { // kubelet has not started the next one: present shows it
		return nil
	}
	which := "previous instance"
	if status.RestartCount > 1 {
		which = "latest ended instance that kubelet reports,"
	}
	fmt.Fprintf(r.out, "==> %s: %s %s, ended %s with exit code %d <==\n", r.Container, which, short(last.ContainerID), clock(last.FinishedAt.Time), last.ExitCode)
	err := r.begin(ctx, &corev1.PodLogOptions{Previous: true})
	if errors.Is(err, errGone) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) {
		fmt.Fprintln(r.out, "its log is gone")
		return nil
	}
	return err
}

// present writes the log of the current instance, until it ends if it is followed.
func (r *reader) present(ctx context.Context, status *corev1.ContainerStatus) error {
	since := "which does not run"
	if status.State.Running != nil {
		since = "since " + clock(status.State.Running.StartedAt.Time)
	}
	fmt.Fprintf(r.out, "==> %s: instance %s, %s, restarts %d <==\n", r.Container, short(status.ContainerID), since, status.RestartCount)
	err := r.begin(ctx, &corev1.PodLogOptions{Follow: r.Follow})
	if r.Follow && apierrors.IsBadRequest(err) { // the instance has ended meanwhile
		return nil
	}
	return err
}

const (
	// relist bounds how long a lost watch goes unnoticed.
	relist = 10 * time.Second
	// again is the time between the end of a stream and the next one of the same instance. The status of the pod has usually changed
	// by then if the stream has ended because the instance has.
	again = 5 * time.Second
)

// next returns the pod when there is another instance of the container, or when the one that was seen is still running after a pause; nil if
// there will be none.
func (r *reader) next(ctx context.Context, seen string) (*corev1.Pod, error) {
	for {
		pod, done, err := r.look(ctx, seen)
		if done || err != nil || ctx.Err() != nil {
			return pod, errors.Join(err, context.Cause(ctx))
		}
	}
}

func (r *reader) look(ctx context.Context, seen string) (pod *corev1.Pod, done bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, relist)
	defer cancel()
	changes, err := r.API.Watch(waiting, &corev1.PodList{}, client.InNamespace(r.key.Namespace), client.MatchingFields{"metadata.name": r.key.Name})
	if err != nil {
		return nil, false, err
	}
	defer changes.Stop()
	pod = &corev1.Pod{}
	if err := r.API.Get(waiting, r.key, pod); err != nil {
		return nil, apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	pause := time.NewTimer(again)
	defer pause.Stop()
	paused := false
	for {
		status := r.status(pod)
		switch {
		case status != nil && status.ContainerID != "" && status.ContainerID != seen && status.State.Waiting == nil:
			return pod, true, nil
		case paused && status != nil && status.ContainerID != "" && status.ContainerID == seen && status.State.Running != nil:
			return pod, true, nil
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
			return nil, true, nil
		}
		select {
		case <-waiting.Done():
			return nil, false, nil
		case <-pause.C:
			paused = true
		case event, open := <-changes.ResultChan():
			changed, ok := event.Object.(*corev1.Pod)
			if !open || !ok {
				return nil, false, nil
			}
			if event.Type == watch.Deleted {
				return nil, true, nil
			}
			pod = changed
		}
	}
}

// short returns the beginning of a container ID, as crictl shows it.
func short(id string) string {
	_, id, _ = strings.Cut(id, "://")
	const shown = 12
	return id[:min(len(id), shown)]
}

func clock(at time.Time) string { return at.UTC().Format(time.TimeOnly) + " UTC" }
