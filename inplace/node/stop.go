package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// stop stops one instance, once, as kubelet would: preStop hook within the grace period, SIGTERM, SIGKILL. Kubelet
// starts the next one.
func (r *Reporter) stop(ctx context.Context, key string, pod *corev1.Pod, status *corev1.ContainerStatus) {
	r.mu.Lock()
	begun := r.stopping[status.ContainerID]
	r.stopping[status.ContainerID] = true
	r.mu.Unlock()
	if begun {
		return
	}
	r.config.Logger.Info("stopping container for its environment", "pod", key, "container", status.Name, "id", status.ContainerID)
	r.config.Events.Event(about(pod, status.Name), corev1.EventTypeNormal, "Killing",
		fmt.Sprintf("Stopping container %s: its environment from labels and annotations of the pod has changed", status.Name))
	r.work.Go(func() {
		if err := r.config.Guard.Do("containers", guard.Of(pod), func() error { return r.stopNow(ctx, pod, status) }); err != nil && ctx.Err() == nil {
			r.config.Logger.Warn("container not stopped", "pod", key, "container", status.Name, "err", err)
			r.mu.Lock()
			delete(r.stopping, status.ContainerID)
			r.mu.Unlock()
			r.queue.AddRateLimited(key)
		}
	})
}

func (r *Reporter) stopNow(ctx context.Context, pod *corev1.Pod, status *corev1.ContainerStatus) error {
	grace := kubelet.GracePeriod(pod.Spec.TerminationGracePeriodSeconds)
	id := strings.TrimPrefix(status.ContainerID, r.config.RuntimeName+"://")
	begun := time.Now()
	if spec := kubelet.ContainerIn(pod.Spec.Containers, status.Name); grace > 0 && spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil {
		call := hook.Call{
			Pod: pod, Container: status.Name, ID: identity.ContainerID{Runtime: r.config.RuntimeName, ID: id},
			Handler: spec.Lifecycle.PreStop, Timeout: grace,
		}
		if err := r.config.Hooks.Run(ctx, call); err != nil {
			r.config.Events.Event(about(pod, status.Name), corev1.EventTypeWarning, "FailedPreStopHook", err.Error())
		}
		grace = max(grace-time.Since(begun), kubelet.MinGracePeriod)
	}
	return r.config.Runtime.StopContainer(ctx, id, grace)
}

func about(pod *corev1.Pod, container string) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		FieldPath: fmt.Sprintf("spec.containers{%s}", container),
	}
}
