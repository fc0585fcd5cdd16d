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
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/bench/crr/sight"
	"github.com/refit-project/refit/test/bench/crr/verdict"
)

var errRequestFailed = errors.New("request failed")

// restart restarts the pod's container and waits for its new one. request names the request.
func (c *cluster) restart(ctx context.Context, who verdict.Side, pod *corev1.Pod, request string, began time.Time) (verdict.Sample, error) {
	old := app(pod).ContainerID
	ready := c.pods.Expect(pod.Name, func(s sight.Sighting[*corev1.Pod]) bool {
		now := app(s.Object)
		return s.Gone || now.ContainerID != old && now.ContainerID != "" && now.Ready && now.State.Running != nil
	})
	timed := verdict.Sample{Side: who}
	switch who {
	case verdict.Ours:
		completed := c.requests.Expect(request, func(s sight.Sighting[*v1beta1.ContainerRecreateRequest]) bool {
			return s.Gone || s.Object.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
		})
		if err := c.ask(ctx, request, pod); err != nil {
			return timed, err
		}
		end, err := sight.Await(ctx, "request "+request, completed)
		if err != nil {
			return timed, err
		}
		if end.Gone || end.Object.Status.Message != "" {
			return timed, fmt.Errorf("%w: %s: %s", errRequestFailed, request, end.Object.Status.Message)
		}
		timed.Done = end.At.Sub(began)
	case verdict.Floor:
		if err := c.stop(ctx, pod); err != nil {
			return timed, err
		}
	}
	seen, err := sight.Await(ctx, "the next container of pod "+pod.Name, ready)
	if err != nil {
		return timed, err
	}
	if seen.Gone {
		return timed, fmt.Errorf("pod %s was deleted under way", pod.Name)
	}
	timed.Ready = seen.At.Sub(began)
	if who == verdict.Floor {
		timed.Done = timed.Ready
	}
	return timed, nil
}

// ask makes a request and nothing more.
func (c *cluster) ask(ctx context.Context, name string, pod *corev1.Pod) error {
	request := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: pod.Name, Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: app(pod).Name}},
		},
	}
	if err := c.API.Create(ctx, request); err != nil {
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
