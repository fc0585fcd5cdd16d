package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/kubelet"
)

// run lets a rollout, the daemons, crashes, replaced pods and a user who pauses act in a random order. It returns what
// was against the rules. Pods are made unavailable by crashes too: then nothing more may be started than what is free.
func run(seed uint64, pods, limit int) error {
	random := rand.New(rand.NewPCG(seed, 2))
	f := newFixture(pods, maxUnavailable(fmt.Sprint(limit)), func(s *v1alpha1.RestartRolloutSpec) { s.FailurePolicy = v1alpha1.RolloutFailureContinue })
	requests := map[types.UID]int{}
	for range 40 * (pods + 1) {
		f.now = f.now.Add(time.Second)
		switch pod := f.observed.Pods[random.IntN(pods)]; random.IntN(10) {
		case 0:
			if ready := kubelet.StatusIn(pod.Status.ContainerStatuses, "app"); ready != nil && f.request(pod.Name) == nil {
				setReady(pod, false, f.now) // a crash
			}
		case 1:
			setReady(pod, true, f.now)
		case 2:
			f.rollout.Spec.Paused = !f.rollout.Spec.Paused && random.IntN(3) == 0
		case 3, 4, 5:
			if request := f.request(pod.Name); request != nil && !crr.Completed(request) {
				if random.IntN(10) == 0 {
					f.fail(pod.Name)
				} else {
					f.restart(pod.Name)
				}
			}
		default:
			before := unavailable(f)
			started := f.look()
			if f.rollout.Status.CompletionTime != nil {
				return finished(f)
			}
			for _, name := range started {
				requests[f.pod(name).UID]++
				if requests[f.pod(name).UID] > 1 {
					return fmt.Errorf("pod %s has been restarted twice", name)
				}
			}
			if after := unavailable(f); after > max(limit, before) {
				return fmt.Errorf("%d pods are unavailable, %d were, %d may be", after, before, limit)
			}
		}
	}
	f.rollout.Spec.Paused = false
	for range 4 * pods {
		for _, pod := range f.observed.Pods {
			setReady(pod, true, f.now)
			if request := f.request(pod.Name); request != nil && !crr.Completed(request) {
				f.restart(pod.Name)
			}
		}
		if f.look(); f.rollout.Status.CompletionTime != nil {
			return finished(f)
		}
	}
	return fmt.Errorf("does not end: %+v", f.rollout.Status)
}

func unavailable(f *fixture) int {
	n := 0
	for _, pod := range f.observed.Pods {
		request := f.request(pod.Name)
		if pod.Status.Conditions[0].Status != "True" || request != nil && !crr.Completed(request) {
			n++
		}
	}
	return n
}

func finished(f *fixture) error {
	for _, pod := range f.observed.Pods {
		if request := f.request(pod.Name); request == nil || !crr.Completed(request) {
			return fmt.Errorf("ended although pod %s has not been restarted", pod.Name)
		}
	}
	return nil
}

func TestRandomRolloutsKeepTheBudgetRestartEachPodOnceAndEnd(t *testing.T) {
	t.Parallel()
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 200
	}
	for seed := range seeds {
		if err := run(seed, 1+int(seed%12), 1+int(seed%4)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add(uint64(1), uint8(5), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, pods, limit uint8) {
		if err := run(seed, 1+int(pods%20), 1+int(limit%20)); err != nil {
			t.Fatal(err)
		}
	})
}
