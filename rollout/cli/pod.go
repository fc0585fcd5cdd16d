package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout/cli/board"
	"github.com/refit-project/refit/rollout/cli/follow"
)

const (
	requestDeadline = 600       // seconds, for the restart of one pod
	requestTTL      = 24 * 3600 // seconds that the request for a pod is kept after its end
)

// pod restarts containers of one pod.
func (r *restarter) pod(ctx context.Context, name string) error {
	var pod corev1.Pod
	if err := r.API.Get(ctx, r.key(name), &pod); err != nil {
		return err
	}
	containers := r.Containers
	if len(containers) == 0 {
		var err error
		if containers, err = only(&pod); err != nil {
			return err
		}
	}
	if err := checkDrain(r.DrainSeconds, &pod); err != nil {
		return err
	}
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, GenerateName: generateName(name), Annotations: r.annotations()}}
	request.Spec = v1beta1.ContainerRecreateRequestSpec{
		PodName: name, ActiveDeadlineSeconds: new(int64(requestDeadline)), TTLSecondsAfterFinished: new(int32(requestTTL)),
		Strategy: &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: r.GracePeriodSeconds},
	}
	if r.DrainSeconds != nil {
		request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(*r.DrainSeconds))
	}
	if r.MinReadySeconds != nil {
		request.Spec.Strategy.MinStartedSeconds = *r.MinReadySeconds
	}
	for _, container := range containers {
		request.Spec.Containers = append(request.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: container})
	}
	began := time.Now()
	if err := r.create(ctx, request); err != nil {
		return err
	}
	if r.DryRun {
		r.Output.Print("pod %s/%s on node %s: %s would be restarted (dry run: admitted, and nothing done)\n", r.Namespace, name, pod.Spec.NodeName, list(containers))
		return r.Made.Ended(r.API.Scheme(), request)
	}
	r.Output.Say("ContainerRecreateRequest %s: restart %s of pod %s", request.Name, list(containers), name)
	if !r.Wait {
		return r.Made.Ended(r.API.Scheme(), request)
	}
	return console.Begun(r.followRequest(ctx, request, began))
}

// generateName returns a prefix for a generated object name.
func generateName(of string) string {
	const longest = 190
	return of[:min(len(of), longest)] + "-"
}

// followRequest prints the progress of a request until it has ended.
func (r *restarter) followRequest(ctx context.Context, request *v1beta1.ContainerRecreateRequest, began time.Time) error {
	silent, processed := console.Silent{Output: r.Output, Kind: "ContainerRecreateRequests", Feature: "containerRecreateRequests"}, false
	request, err := follow.Object(ctx, r.API, &v1beta1.ContainerRecreateRequestList{}, request, func(request *v1beta1.ContainerRecreateRequest) bool {
		processed = request.Labels[v1beta1.LabelNodeName] != "" || request.Status.Phase != ""
		if message := request.Status.Message; message != "" && !crr.Completed(request) {
			r.Output.Wait("%s", message)
		} else if !crr.Completed(request) {
			r.Output.Wait("%s", waitingFor(request))
		}
		return crr.Completed(request)
	}, func(err error) { silent.Tick(processed, err) })
	if err := r.Made.Ended(r.API.Scheme(), request); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return r.interrupted(ctx, r.held(ctx, request), "kubectl get crr "+request.Name+" --namespace="+r.Namespace+" --watch", "kubectl delete crr "+request.Name+" --namespace="+r.Namespace)
	}
	if err != nil {
		return err
	}
	if outcome := crr.OutcomeOf(request); outcome.Reason != "" {
		return fmt.Errorf("%w: ContainerRecreateRequest %s: %s: %s", ErrFailed, request.Name, outcome.Reason, outcome.Message)
	}
	r.Output.Say("restarted in %.1f s", time.Since(began).Seconds())
	return r.instances(ctx, request)
}

// waitingFor returns what a request waits for.
func waitingFor(request *v1beta1.ContainerRecreateRequest) string {
	if request.Status.Phase == "" {
		return "waiting for the daemon of node " + request.Labels[v1beta1.LabelNodeName]
	}
	if message := crr.DrainMessage(request); message != "" {
		return message
	}
	for _, state := range request.Status.ContainerRecreateStates {
		switch state.Phase {
		case v1beta1.ContainerRecreateRequestPending:
			return "container " + state.Name + ": stopping"
		case v1beta1.ContainerRecreateRequestRecreating:
			return "container " + state.Name + ": stopped; waiting for kubelet to start it and for it to be ready"
		}
	}
	return "waiting for the request to end"
}

// held returns what delays a request: what kubelet reports about its containers, or else what it waited for.
func (r *restarter) held(ctx context.Context, request *v1beta1.ContainerRecreateRequest) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	var pod corev1.Pod
	if err := r.API.Get(ctx, r.key(request.Spec.PodName), &pod); err != nil {
		return r.Output.Last()
	}
	var texts []string
	for _, container := range request.Spec.Containers {
		if status := kubelet.StatusOf(&pod, container.Name); status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" {
			waiting := status.State.Waiting
			texts = append(texts, strings.TrimSuffix(fmt.Sprintf("container %s: %s: %s", container.Name, waiting.Reason, requester.Printable(waiting.Message)), ": "))
		}
	}
	return cmp.Or(strings.Join(texts, "; "), r.Output.Last())
}

// instances prints the instances before and after the restart.
func (r *restarter) instances(ctx context.Context, request *v1beta1.ContainerRecreateRequest) error {
	var pod corev1.Pod
	if err := r.API.Get(ctx, r.key(request.Spec.PodName), &pod); err != nil {
		return fmt.Errorf("read the pod that was restarted: %w", err)
	}
	for _, container := range request.Spec.Containers {
		status := kubelet.StatusOf(&pod, container.Name)
		if status == nil || container.StatusContext == nil {
			continue
		}
		r.Output.Print("  container %s: %s -> %s, restarts %d -> %d\n", container.Name,
			board.ShortID(container.StatusContext.ContainerID), board.ShortID(status.ContainerID), container.StatusContext.RestartCount, status.RestartCount)
	}
	return nil
}

func list(containers []string) string {
	if len(containers) == 1 {
		return "container " + containers[0]
	}
	return "containers " + strings.Join(containers, ", ")
}
