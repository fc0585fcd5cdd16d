package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/crrtest"
	"github.com/refit-project/refit/crr/lifecycle"
)

func TestLifecycleEndsRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request  []edit
		observed lifecycle.Observation
		after    time.Duration
		reason   string
		message  string
	}{
		"never admitted": {
			request: []edit{unadmitted}, observed: lifecycle.Observation{Pod: crrtest.WebPod()},
			reason: "InvalidRequest", message: "has not passed admission: spec.containers[1].statusContext",
		},
		"no labels": {
			request: []edit{func(r *v1beta1.ContainerRecreateRequest) { r.Labels = nil }}, observed: lifecycle.Observation{Pod: crrtest.WebPod()},
			reason: "InvalidRequest", message: "MutatingWebhookConfiguration",
		},
		"pod gone":  {reason: "PodGone", message: "pod has gone"},
		"node gone": {observed: lifecycle.Observation{Pod: crrtest.WebPod(), NodeGone: true}, reason: "NodeGone", message: "node node-1 does not exist"},
		"deadline": {
			request: []edit{taken, deadline(10)}, observed: lifecycle.Observation{Pod: crrtest.WebPod()}, after: 13 * time.Second,
			reason: "DeadlineExceeded", message: "recreating has exceeded the activeDeadlineSeconds",
		},
		"no daemon": {
			observed: lifecycle.Observation{Pod: crrtest.WebPod()}, after: time.Minute,
			reason: "DaemonNotResponding", message: "daemon has not responded for a long time: is the pod of refit-daemon on node node-1",
		},
		"the daemon is silent": {
			request:  []edit{taken},
			observed: lifecycle.Observation{Pod: crrtest.WebPod(), NoDaemonSince: crrtest.AdmittedAt}, after: 5 * time.Minute,
			reason: "DaemonNotResponding", message: "no pod of refit-daemon on node node-1 has been ready for 5m0s",
		},
		"not admitted, and pod gone": {request: []edit{unadmitted}, reason: "InvalidRequest", message: "has not passed admission"},
		"pod and node gone":          {observed: lifecycle.Observation{NodeGone: true}, reason: "PodGone", message: "pod has gone"},
		"node gone, and late": {
			request: []edit{deadline(10)}, observed: lifecycle.Observation{Pod: crrtest.WebPod(), NodeGone: true}, after: time.Hour,
			reason: "NodeGone", message: "node node-1 does not exist",
		},
		"late, and no daemon": {
			request: []edit{deadline(10)}, observed: lifecycle.Observation{Pod: crrtest.WebPod()}, after: time.Hour,
			reason: "DeadlineExceeded", message: "recreating has exceeded the activeDeadlineSeconds",
		},
		"a foreign daemon failed": {
			request: []edit{takenByKruise, phase("Completed")}, reason: "ContainerFailed", message: "container app was not recreated",
		},
		"a foreign manager ended it": {
			request: []edit{takenByKruise, phase("Completed"), func(r *v1beta1.ContainerRecreateRequest) { r.Status.Message = "pod has gone" }},
			reason:  "ContainerFailed", message: "pod has gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := crrtest.AdmittedAt.Add(tc.after)
			status := next(t, stored(t, tc.request...), tc.observed, now).Status
			if status == nil {
				t.Fatal("no status")
			}
			if status.Phase != "Completed" || !status.CompletionTime.Time.Equal(now) || !strings.Contains(status.Message, tc.message) {
				t.Errorf("phase %s at %v with message %q, want %q", status.Phase, status.CompletionTime, status.Message, tc.message)
			}
			failed := meta.FindStatusCondition(status.Conditions, "Failed")
			if failed == nil || failed.Status != "True" || failed.Reason != tc.reason || failed.ObservedGeneration != 1 ||
				!meta.IsStatusConditionFalse(status.Conditions, "Succeeded") {
				t.Errorf("conditions %+v, want Failed with reason %s", status.Conditions, tc.reason)
			}
			for _, state := range status.ContainerRecreateStates {
				if state.Phase != "Failed" || state.Message == "" {
					t.Errorf("container %s is %s with message %q", state.Name, state.Phase, state.Message)
				}
			}
		})
	}
}

func TestLifecycleSettlesASuccessOfAForeignDaemon(t *testing.T) {
	t.Parallel()
	ended := metav1.NewTime(crrtest.AdmittedAt.Add(5 * time.Second))
	request := stored(t, takenByKruise, phase("Completed"), func(r *v1beta1.ContainerRecreateRequest) {
		r.Status.CompletionTime = &ended
		for i := range r.Status.ContainerRecreateStates {
			r.Status.ContainerRecreateStates[i].Phase = "Succeeded"
		}
	})
	status := next(t, request, lifecycle.Observation{Pod: crrtest.WebPod()}, crrtest.AdmittedAt.Add(time.Hour)).Status
	if status == nil || !meta.IsStatusConditionTrue(status.Conditions, "Succeeded") || !status.CompletionTime.Equal(&ended) || status.Message != "" {
		t.Errorf("status %+v, want succeeded at %v", status, ended)
	}
}

func TestLifecycleHandsOffWhatRuns(t *testing.T) {
	t.Parallel()
	pod := crrtest.WebPod()
	restarted(pod)
	pod.Status.ContainerStatuses[0].Ready = true
	status := next(t, stored(t, takenByKruise), lifecycle.Observation{Pod: pod}, crrtest.AdmittedAt).Status
	want := []v1beta1.ContainerStatusSnapshot{{Name: "app", Ready: true, RestartCount: 4, ContainerID: "containerd://app2"}}
	if diff := cmp.Diff(want, status.ContainerStatusSnapshot); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func TestLifecycleReadiness(t *testing.T) {
	t.Parallel()
	const ours, theirs = `{"userAgent":"ContainerRecreateRequest","key":"shop/r"}`, `{"userAgent":"Lifecycle","key":"preUpdateHook"}`
	since := metav1.NewTime(crrtest.AdmittedAt)
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, message string, at metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Message: message, LastTransitionTime: at}
	}
	const notReady = `readiness gate "KruisePodReady" has become False` // not kubelet's message
	drained := condition("Ready", "False", notReady, since)
	drained.Reason = "ReadinessGatesNotReady"
	ready, notYet := condition("Ready", "True", "", metav1.Time{}), condition("Ready", "False", "kubelet's", metav1.Time{})
	for name, tc := range map[string]struct {
		edits        []edit
		before, want []corev1.PodCondition
	}{
		"taken for the first time": {
			before: []corev1.PodCondition{ready},
			want:   []corev1.PodCondition{drained, condition("KruisePodReady", "False", "["+ours+"]", since)},
		},
		"taken beside another writer": {
			before: []corev1.PodCondition{condition("KruisePodReady", "False", "["+theirs+"]", metav1.Time{}), notYet},
			want:   []corev1.PodCondition{condition("KruisePodReady", "False", "["+ours+","+theirs+"]", metav1.Time{}), notYet},
		},
		"taken where the status lags behind the list": {
			before: []corev1.PodCondition{condition("KruisePodReady", "", "["+ours+"]", metav1.Time{})},
			want:   []corev1.PodCondition{condition("KruisePodReady", "False", "["+ours+"]", since)},
		},
		"given back": {
			edits:  []edit{succeeded},
			before: []corev1.PodCondition{condition("KruisePodReady", "False", "["+ours+"]", metav1.Time{}), notYet},
			want:   []corev1.PodCondition{condition("KruisePodReady", "True", "[]", since), notYet},
		},
		"given back beside another writer": {
			edits:  []edit{succeeded},
			before: []corev1.PodCondition{condition("KruisePodReady", "False", "["+ours+","+theirs+"]", metav1.Time{})},
			want:   []corev1.PodCondition{condition("KruisePodReady", "False", "["+theirs+"]", metav1.Time{})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := crrtest.WebPod()
			gated(pod)
			pod.Status.Conditions = tc.before
			got := next(t, stored(t, append([]edit{taken, drainFor(5), finalized}, tc.edits...)...), lifecycle.Observation{Pod: pod}, crrtest.AdmittedAt)
			if got.Pod == nil {
				t.Fatalf("pod untouched: %s", got.Why)
			}
			if diff := cmp.Diff(tc.want, got.Pod.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// The earlier of two times at which something has to be done counts, and a list that others have spoilt holds nothing up.
func TestLifecycleLooksAgainAtTheEarlierTime(t *testing.T) {
	t.Parallel()
	silent := lifecycle.Observation{Pod: crrtest.WebPod(), NoDaemonSince: crrtest.AdmittedAt}
	for seconds, want := range map[int64]time.Duration{60: 63 * time.Second, 600: 5 * time.Minute} {
		got := next(t, stored(t, taken, deadline(seconds)), silent, crrtest.AdmittedAt)
		if !got.Again.Equal(crrtest.AdmittedAt.Add(want)) {
			t.Errorf("deadline of %d s: again after %s", seconds, got.Again.Sub(crrtest.AdmittedAt))
		}
	}
	pod := crrtest.WebPod()
	garbled(pod)
	if got := next(t, stored(t, taken, succeeded, finalized), lifecycle.Observation{Pod: pod}, crrtest.AdmittedAt); got.Meta == nil {
		t.Errorf("the finalizer stays: %s", got.Why)
	}
}

func TestLifecycleMetadata(t *testing.T) {
	t.Parallel()
	pod := crrtest.WebPod()
	gated(pod)
	added := next(t, stored(t, taken, drainFor(5)), lifecycle.Observation{Pod: pod}, crrtest.AdmittedAt).Meta
	if diff := cmp.Diff([]string{drainFinalizer}, added.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	ended := next(t, stored(t, taken, succeeded, finalized), lifecycle.Observation{Pod: pod}, crrtest.AdmittedAt).Meta
	if diff := cmp.Diff([]string{"other"}, ended.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if _, active := ended.Labels["crr.apps.kruise.io/active"]; active || ended.Labels["crr.apps.kruise.io/pod-uid"] != "uid-1" {
		t.Errorf("labels %v", ended.Labels)
	}
}

func TestOpenKruiseDoesNotWaitForADrainThatIsNotPossible(t *testing.T) {
	t.Parallel()
	status := next(t, stored(t, takenByKruise, drainFor(5)), lifecycle.Observation{Pod: crrtest.WebPod()}, crrtest.AdmittedAt).Status
	grace := meta.FindStatusCondition(status.Conditions, "PreRecreateGrace")
	if grace == nil || !grace.LastTransitionTime.Time.Equal(crrtest.AdmittedAt.Add(-5*time.Second)) || !strings.Contains(grace.Message, "no readiness gate") {
		t.Errorf("condition %+v", grace)
	}
}

func TestBeginReadiness(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*corev1.Pod)
		want bool
	}{
		"gate without condition": {edit: func(p *corev1.Pod) { gated(p); p.Status.Conditions = nil }, want: true},
		"condition is there":     {edit: gated},
		"condition is false":     {edit: held},
		"no gate":                {edit: func(*corev1.Pod) {}},
		"pod going": {edit: func(p *corev1.Pod) {
			gated(p)
			p.Status.Conditions, p.DeletionTimestamp = nil, &metav1.Time{Time: crrtest.AdmittedAt}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := crrtest.WebPod()
			tc.edit(pod)
			status, begun := beginReadiness(t, pod, crrtest.AdmittedAt)
			if begun != tc.want {
				t.Fatalf("begun %t", begun)
			}
			if !begun {
				return
			}
			want := []corev1.PodCondition{{Type: "KruisePodReady", Status: "True", LastTransitionTime: metav1.NewTime(crrtest.AdmittedAt)}}
			if diff := cmp.Diff(want, status.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// restarted: the new instance of app runs, the one of log does not exist yet.
func restarted(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "app", ContainerID: "containerd://app2", RestartCount: 4, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "log", ContainerID: "containerd://log1", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
	}
}

// crashing: the new instance of app has ended, and kubelet waits before it starts the next.
func crashing(p *corev1.Pod) {
	restarted(p)
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
}
