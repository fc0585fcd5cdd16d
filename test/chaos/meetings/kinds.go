package meetings

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/cluster"
)

// young: a rollout of pods that have just been started. Every other time they are ready, but not for minReadySeconds.
func young(ctx context.Context, s *stage) error {
	const minReady = 10
	form := shape{replicas: 3, delay: 10, hook: 10, grace: 20, mostDisabled: new(1)}
	wait, least := s.running, int32(0)
	if s.number%2 == 1 {
		form.hook, form.minReady = 1, minReady
		wait, least = s.ready, minReady
	}
	if err := s.workload(ctx, form); err != nil {
		return err
	}
	if err := wait(ctx); err != nil {
		return err
	}
	r, err := s.rollout(ctx, func(spec *refitv1alpha1.RestartRolloutSpec) { spec.MinReadySeconds = &least })
	if err != nil {
		return err
	}
	return s.ended(ctx, r)
}

// blip: readiness fails for a moment on all pods during a rollout.
func blip(ctx context.Context, s *stage) error {
	if err := s.workload(ctx, shape{replicas: 3, delay: 8, grace: 10, mostDisabled: new(1)}); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	r, err := s.rollout(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.begun(ctx); err != nil {
		return err
	}
	if err := s.blip(ctx); err != nil {
		return err
	}
	return s.ended(ctx, r)
}

// budget: a rollout that may take nothing, and readiness that fails for a moment.
func budget(ctx context.Context, s *stage) error {
	const waits = 8 * time.Second // longer than a budget may be out of date for the judge
	if err := s.workload(ctx, shape{replicas: 3, delay: 6, grace: 10, mostDisabled: new(0)}); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := cluster.Pause(ctx, waits); err != nil {
		return err
	}
	if _, err := s.rollout(ctx, nil); err != nil {
		return err
	}
	if err := cluster.Pause(ctx, waits); err != nil {
		return err
	}
	if err := s.blip(ctx); err != nil {
		return err
	}
	return cluster.Pause(ctx, waits)
}

// failed: requests whose deadlines pass while their containers are being stopped.
func failed(ctx context.Context, s *stage) error {
	if err := s.workload(ctx, shape{replicas: 4, delay: 8, grace: 14, ignoresTerm: true}); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	r, err := s.rollout(ctx, func(spec *refitv1alpha1.RestartRolloutSpec) {
		spec.FailurePolicy = refitv1alpha1.RolloutFailureContinue
		spec.Pod.ActiveDeadlineSeconds = new(int64(6))
	})
	if err != nil {
		return err
	}
	return s.ended(ctx, r)
}

// deadline: a rollout that its deadline ends while its second pod is being stopped, and one that is deleted then, each followed by another.
func deadline(ctx context.Context, s *stage) error {
	// The first pod has its 12 s of grace and 6 s until it is ready behind it, the second one not its grace yet.
	const seconds = 27
	if err := s.workload(ctx, shape{replicas: 3, delay: 6, grace: 12, ignoresTerm: true}); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	first, err := s.rollout(ctx, func(spec *refitv1alpha1.RestartRolloutSpec) { spec.ActiveDeadlineSeconds = new(int64(seconds)) })
	if err != nil {
		return err
	}
	if err := s.ended(ctx, first); err != nil {
		return err
	}
	second, err := s.rollout(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.second(ctx, second); err != nil {
		return err
	}
	if err := s.cluster.Delete(ctx, second); err != nil {
		return fmt.Errorf("delete rollout: %w", err)
	}
	third, err := s.rollout(ctx, nil)
	if err != nil {
		return err
	}
	return s.ended(ctx, third)
}

// replace: a schedule that replaces the rollout before, whose stops are under way.
func replace(ctx context.Context, s *stage) error {
	const times = 2 * time.Minute
	if err := s.workload(ctx, shape{replicas: 4, delay: 4, grace: 15, ignoresTerm: true}); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	schedule := &refitv1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "minutely"}}
	schedule.Spec.Schedule, schedule.Spec.ConcurrencyPolicy = "* * * * *", refitv1alpha1.ScheduleReplace
	schedule.Spec.RolloutTemplate.Spec = rolloutSpec()
	s.left = append(s.left, schedule)
	if err := s.create(ctx, schedule); err != nil {
		return err
	}
	return cluster.Pause(ctx, times+time.Duration(s.choice.Int64N(int64(20*time.Second))))
}

// orders: a user updates two pods at once, with one command for each, and a rollout begins.
func orders(ctx context.Context, s *stage) error {
	const before = 3 * time.Second // longer than what a user has begun may be unknown to the manager for the judge
	side := sidecar("side", images[0])
	if err := s.workload(ctx, shape{replicas: 3, delay: 4, grace: 10, container: &side}); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	tool, err := s.tool()
	if err != nil {
		return err
	}
	pods, err := s.pods(ctx)
	if err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	for _, pod := range pods[1:] {
		group.Go(func() error {
			command := exec.CommandContext(inner, tool, "set", "image", "pod/"+pod.Name, "side="+images[1], "--namespace", s.namespace)
			if out, err := command.CombinedOutput(); err != nil {
				return fmt.Errorf("set image of %s: %w: %s", pod.Name, err, out)
			}
			return nil
		})
	}
	var r *refitv1alpha1.RestartRollout
	group.Go(func() (err error) {
		if err := s.until(inner, "update of two pods", func(p *corev1.Pod) bool {
			return p.Name == pods[0].Name || p.Spec.Containers[1].Image == images[1]
		}); err != nil {
			return err
		}
		if err := cluster.Pause(inner, before); err != nil {
			return err
		}
		r, err = s.rollout(inner, nil)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return s.ended(ctx, r)
}
