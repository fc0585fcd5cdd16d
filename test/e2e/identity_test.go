package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// TestSuccessByContainerIdentity takes the manager away while a request is carried out: the daemon alone decides, by
// what the pod's own status says of the new instance. It is not parallel: nobody can create requests meanwhile.
func TestSuccessByContainerIdentity(t *testing.T) {
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/tmp/ready"}}},
		PeriodSeconds: 1,
	}
	s.check(s.Create(t.Context(), pod), "make pod")
	s.exec("web", "app", "touch /tmp/ready")
	before := s.awaitPod("web", "to be ready", func(pod *corev1.Pod) bool { return status(pod, "app").Ready })
	s.ask("r", "web/app")
	s.awaitPod("web", "to run the next instance", func(pod *corev1.Pod) bool {
		app := status(pod, "app")
		return app.State.Running != nil && app.ContainerID != status(before, "app").ContainerID
	})
	s.scaleManager(0)
	r := &request{}
	s.check(s.Get(t.Context(), s.key("r"), r), "get request")
	if r.Status.Phase != v1beta1.ContainerRecreateRequestRecreating {
		t.Errorf("phase %s before the new instance is ready", r.Status.Phase)
	}
	s.exec("web", "app", "touch /tmp/ready")
	s.succeeded("r")
	s.restarted(before, "app", 1)
}

// scaleManager sets the number of replicas for the rest of the test and waits until the others are gone.
func (s *fixture) scaleManager(replicas int32) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	was := &appsv1.Deployment{}
	s.check(s.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "refit-manager"}, was), "get manager")
	scale := func(to int32) error {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, to)
		return s.Patch(ctx, was.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}
	s.t.Cleanup(func() {
		if err := scale(*was.Spec.Replicas); err != nil {
			s.t.Errorf("scale manager up again: %v", err)
		}
		if err := until(ctx, patience, s.admits); err != nil {
			s.t.Errorf("wait for the manager: %v", err)
		}
	})
	s.check(scale(replicas), "scale manager down")
	s.await("end of the manager's pods", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := s.List(ctx, &pods, managerPods()...)
		return len(pods.Items) <= int(replicas), err
	})
}

// admits reports whether every replica of the manager is ready and admission answers.
func (s *fixture) admits(ctx context.Context) (bool, error) {
	manager := &appsv1.Deployment{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "refit-manager"}, manager); err != nil {
		return false, err
	}
	err := s.Create(ctx, s.newRequest("probe", "no-such-pod/app"), client.DryRunAll)
	return manager.Status.ReadyReplicas == *manager.Spec.Replicas && err != nil && strings.Contains(err.Error(), "no found Pod"), nil
}

func TestCompletedIsNeverRevived(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient), shell("other", obedient)))
	s.ask("r", "web/app")
	s.succeeded("r")
	s.awaitRequest("r", "to lose its label", func(r *request) bool { return r.Labels[v1beta1.LabelActive] == "" })
	// Somebody hands it to the daemon again and calls it unfinished.
	r := &request{}
	s.check(s.Get(t.Context(), s.key("r"), r), "get request")
	s.check(s.Status().Patch(t.Context(), r, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Recreating"}}`))), "patch phase")
	s.check(s.Patch(t.Context(), r, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, v1beta1.LabelActive))), "patch label")
	// Once the daemon is through with a later request of the pod, it has been past the first.
	s.ask("later", "web/other")
	s.succeeded("later")
	s.restarted(before, "app", 1)
	s.succeeded("r")
}

func TestDeadlineMarksContainersFailed(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", stubborn), shell("next", obedient))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(600))
	before := s.start(pod)
	s.ask("r", "web/app,next", deadline(3))
	r := s.failed("r", "DeadlineExceeded", "activeDeadlineSeconds")
	for _, container := range []string{"app", "next"} {
		state := stateOf(r, container)
		if state.Phase != v1beta1.ContainerRecreateRequestFailed || !strings.Contains(state.Message, "activeDeadlineSeconds") {
			t.Errorf("container %s is %s: %q; want Failed for the deadline", container, state.Phase, state.Message)
		}
	}
	s.untouched(before, "next")
}

func TestOtherContainersAreUntouched(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient), shell("other", obedient)))
	pulls := len(s.events(t.Context(), "Pulling"))
	s.ask("r", "web/app")
	s.succeeded("r")
	after := s.restarted(before, "app", 1)
	s.untouched(before, "other")
	if after.UID != before.UID || after.Status.PodIP != before.Status.PodIP || after.Spec.NodeName != before.Spec.NodeName {
		t.Errorf("pod %s at %s on %s is another than %s at %s on %s", after.UID, after.Status.PodIP, after.Spec.NodeName,
			before.UID, before.Status.PodIP, before.Spec.NodeName)
	}
	if strings.Contains(s.run("logs", "web", "--container=other"), "TERM") {
		t.Error("the other container got a signal")
	}
	s.awaitEvent("Killing", "Stopping container app by ContainerRecreateRequest r")
	s.awaitEvent("ContainersRecreated", "pod web")
	if got := len(s.events(t.Context(), "Pulling")); got != pulls {
		t.Errorf("%d images pulled for the restart", got-pulls)
	}
}

func TestMinStartedSecondsIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	s.ask("r", "web/app", strategy(v1beta1.ContainerRecreateRequestStrategy{MinStartedSeconds: 4}))
	r := s.succeeded("r")
	started := status(s.restarted(before, "app", 1), "app").State.Running.StartedAt
	// Both are in whole seconds, of two clocks.
	if up := r.Status.CompletionTime.Sub(started.Time); up < 3*time.Second {
		t.Errorf("completed %s after the start, want 4s", up)
	}
}
