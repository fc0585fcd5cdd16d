package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

// podWithGate is a pod that a manager can make not ready, and that some controller has made ready.
func (s *fixture) podWithGate() *corev1.Pod {
	s.t.Helper()
	pod := s.podOf("web", shell("app", obedient))
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
	s.start(pod)
	s.check(s.Status().Patch(s.t.Context(), pod, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"KruisePodReady","status":"True"}]}}`))), "patch readiness gate")
	return s.awaitPod("web", "to be ready", func(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) == corev1.ConditionTrue })
}

func TestUnreadyGracePeriodDrainsThePodFirst(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.podWithGate()
	pods, err := s.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace))
	s.check(err, "watch pods")
	defer pods.Stop()
	const drain = 4
	r := s.ask("r", "web/app", strategy(v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(drain))}))
	s.succeeded("r")
	s.restarted(before, "app", 1)
	drained := false
	for {
		pod := (<-pods.ResultChan()).Object.(*corev1.Pod)
		if status(pod, "app").ContainerID != status(before, "app").ContainerID || status(pod, "app").State.Running == nil {
			break
		}
		drained = drained || condition(pod, corev1.PodReady) == corev1.ConditionFalse
	}
	if !drained {
		t.Error("the container was stopped before the pod was made not ready")
	}
	if took := s.stopTook(r, "app"); took < (drain-1)*time.Second {
		t.Errorf("stopped after %s, want %d s", took, drain)
	}
	s.awaitPod("web", "to be ready again", func(pod *corev1.Pod) bool {
		return condition(pod, corev1.PodReady) == corev1.ConditionTrue && condition(pod, v1beta1.ReadinessGateKruisePodReady) == corev1.ConditionTrue
	})
	s.awaitRequest("r", "to lose its finalizer", func(r *request) bool { return len(r.Finalizers) == 0 })
}

// settledPodWithGate has been ready for so long that kubelet does not sync it by itself.
func (s *fixture) settledPodWithGate() *corev1.Pod {
	s.t.Helper()
	s.podWithGate()
	return s.awaitPod("web", "to have been ready for 5 s", func(pod *corev1.Pod) bool {
		ready := kubelet.Condition(&pod.Status, corev1.PodReady)
		return ready != nil && ready.Status == corev1.ConditionTrue && time.Since(ready.LastTransitionTime.Time) > 5*time.Second
	})
}

// kubelet's status manager compares all pods every 10 s, and would write Ready True if kubelet had not synced the pod.
func TestDrainedPodStaysNotReady(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.settledPodWithGate()
	pods, err := s.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace))
	s.check(err, "watch pods")
	defer pods.Stop()
	const drain, firstSync = 14, 2500 * time.Millisecond // of kubelet; a comparison before it may write what was
	s.ask("r", "web/app", strategy(v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(drain))}))
	var drained time.Time
	for {
		pod := (<-pods.ResultChan()).Object.(*corev1.Pod)
		if status(pod, "app").ContainerID != status(before, "app").ContainerID || status(pod, "app").State.Running == nil {
			break
		}
		switch ready := condition(pod, corev1.PodReady) == corev1.ConditionTrue; {
		case !ready && drained.IsZero():
			drained = time.Now()
		case ready && !drained.IsZero() && time.Since(drained) > firstSync:
			t.Errorf("ready again %s after the drain began", time.Since(drained).Round(time.Millisecond))
		}
	}
	if took := time.Since(drained); drained.IsZero() || took < (drain-1)*time.Second {
		t.Errorf("drained for %s until the stop, want %d s", took, drain)
	}
	s.succeeded("r")
}

// Kubelet takes a pod whose Ready has its own message for one that it has synced.
func TestReadyInKubeletsWordsIsWrittenBack(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.settledPodWithGate()
	pods, err := s.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace))
	s.check(err, "watch pods")
	defer pods.Stop()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%[1]q,"status":"False"},{"type":"Ready","status":"False","reason":%[2]q,"message":%[3]q}]}}`,
		v1beta1.ReadinessGateKruisePodReady, kubelet.ReasonReadinessGatesNotReady, kubelet.GateMessage(v1beta1.ReadinessGateKruisePodReady))
	s.check(s.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch))), "close the gate")
	written := time.Now()
	enough := time.NewTimer(12 * time.Second)
	defer enough.Stop()
	var changes []string
	last := corev1.ConditionTrue
	for {
		select {
		case event := <-pods.ResultChan():
			if is := condition(event.Object.(*corev1.Pod), corev1.PodReady); is != last {
				changes, last = append(changes, fmt.Sprintf("%s after %s", is, time.Since(written).Round(10*time.Millisecond))), is
			}
		case <-enough.C:
			s.observed("gate and Ready written False at once, in kubelet's words: Ready is %q", changes)
			if last != corev1.ConditionFalse {
				t.Errorf("Ready is %s at last, with the gate False", last)
			}
			return
		}
	}
}

// TestDeletedRequestGivesBackReadiness deletes a request in the middle of its drain.
func TestDeletedRequestGivesBackReadiness(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.podWithGate()
	r := s.ask("r", "web/app", strategy(v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(600))}))
	s.awaitPod("web", "to be drained", func(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) == corev1.ConditionFalse })
	s.remove(r)
	s.awaitPod("web", "to be ready again", func(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) == corev1.ConditionTrue })
	s.untouched(before, "app")
}

func TestUnreadyGracePeriodWithoutGateIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	s.ask("r", "web/app", strategy(v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(600))}))
	s.succeeded("r")
	s.restarted(before, "app", 1)
}

func TestTTLSecondsAfterFinishedDeletesTheRequest(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.podOf("web", shell("app", obedient)))
	s.ask("r", "web/app", func(r *request) { r.Spec.TTLSecondsAfterFinished = new(int32(2)) })
	s.ask("kept", "web/app")
	s.succeeded("kept")
	s.await("end of the request", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key("r"), &request{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	s.succeeded("kept")
}

// TestFewAPIWrites reads the API server's audit log: a simple request costs four writes at most, of daemon and manager
// together and not counting Events.
func TestFewAPIWrites(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.needsOwnCluster(t)
	s.start(s.podOf("web", shell("app", obedient)))
	s.ask("r", "web/app")
	s.succeeded("r")
	s.awaitRequest("r", "to be retired", func(r *request) bool { return r.Labels[v1beta1.LabelActive] == "" })
	writes := s.writes()
	if len(writes) == 0 || len(writes) > 4 {
		t.Errorf("%d writes, want 1 to 4: %q", len(writes), writes)
	}
}

// writes of daemon and manager to requests and pods of the namespace.
func (s *fixture) writes() []string {
	s.t.Helper()
	file, err := os.Open(filepath.Join(s.state, "logs", "audit.log"))
	s.check(err, "open audit log")
	defer func() { _ = file.Close() }()
	var writes []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), `"`+s.namespace+`"`) {
			continue
		}
		var entry struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Namespace, Resource, Subresource, Name string }
		}
		s.check(json.Unmarshal(lines.Bytes(), &entry), "read audit log")
		ref := entry.ObjectRef
		if ref.Namespace != s.namespace || !strings.HasPrefix(entry.User.Username, "system:serviceaccount:refit-system:") ||
			ref.Resource == "events" || entry.Verb == "get" || entry.Verb == "list" || entry.Verb == "watch" {
			continue
		}
		writes = append(writes, strings.Join([]string{entry.User.Username, entry.Verb, ref.Resource, ref.Subresource, ref.Name}, " "))
	}
	s.check(lines.Err(), "read audit log")
	return writes
}
