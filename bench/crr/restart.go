package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/identity"
)

// side is one of the two that take turns.
type side string

const (
	ours  side = "refit" // a ContainerRecreateRequest
	floor side = "floor" // the same stop, sent straight to CRI
)

// sample is one restart as it was timed. Durations count from the begin of its batch.
type sample struct {
	Side  side `json:"side"`
	Round int  `json:"round"`
	// Exited is when the old instance ended, by the runtime's record; zero when that was removed.
	Exited time.Duration `json:"exitedNanoseconds,omitempty"`
	// Ready is when the pod's status with a new container that is ready reached our watch.
	Ready time.Duration `json:"readyNanoseconds"`
	// Done is when the user knows: Ready of the floor, completion of the request as it reached our watch of Refit.
	Done time.Duration `json:"doneNanoseconds"`
}

var errRequestFailed = errors.New("request failed")

// restart restarts the pod's container and waits for its new one. request names the request.
func (c *cluster) restart(ctx context.Context, who side, pod *corev1.Pod, request string, began time.Time) (sample, error) {
	old := app(pod).ContainerID
	ready := c.pods.expect(pod.Name, func(s sighting[*corev1.Pod]) bool {
		now := app(s.object)
		return s.gone || now.ContainerID != old && now.ContainerID != "" && now.Ready && now.State.Running != nil
	})
	timed := sample{Side: who}
	switch who {
	case ours:
		completed := c.requests.expect(request, func(s sighting[*v1beta1.ContainerRecreateRequest]) bool {
			return s.gone || s.object.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
		})
		if err := c.ask(ctx, request, pod); err != nil {
			return timed, err
		}
		end, err := await(ctx, "request "+request, completed)
		if err != nil {
			return timed, err
		}
		if end.gone || end.object.Status.Message != "" {
			return timed, fmt.Errorf("%w: %s: %s", errRequestFailed, request, end.object.Status.Message)
		}
		timed.Done = end.at.Sub(began)
	case floor:
		if err := c.stop(ctx, pod); err != nil {
			return timed, err
		}
	}
	seen, err := await(ctx, "the next container of pod "+pod.Name, ready)
	if err != nil {
		return timed, err
	}
	if seen.gone {
		return timed, fmt.Errorf("pod %s was deleted under way", pod.Name)
	}
	timed.Ready = seen.at.Sub(began)
	if who == floor {
		timed.Done = timed.Ready
	}
	return timed, nil
}

// ask makes a request and nothing more.
func (c *cluster) ask(ctx context.Context, name string, pod *corev1.Pod) error {
	request := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: pod.Name, Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: app(pod).Name}},
		},
	}
	if err := c.api.Create(ctx, request); err != nil {
		return fmt.Errorf("make request %s: %w", name, err)
	}
	return nil
}

// stop is what the daemon ends up doing: the same call, by the same client, with the pod's grace period.
func (c *cluster) stop(ctx context.Context, pod *corev1.Pod) error {
	id, err := identity.ParseContainerID(app(pod).ContainerID)
	if err != nil {
		return err
	}
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	if err := c.runtime.StopContainer(ctx, id.ID, grace); err != nil {
		return fmt.Errorf("stop container of pod %s: %w", pod.Name, err)
	}
	return nil
}

// exited asks the runtime when an instance ended. The clock is this machine's, as ours is.
func (c *cluster) exited(ctx context.Context, pod *corev1.Pod, began time.Time) (time.Duration, error) {
	id, err := identity.ParseContainerID(app(pod).ContainerID)
	if err != nil {
		return 0, err
	}
	status, err := c.runtime.ContainerStatus(ctx, id.ID)
	if errors.Is(err, cri.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at the ended container of pod %s: %w", pod.Name, err)
	}
	return status.FinishedAt.Sub(began.Round(0)), nil
}
