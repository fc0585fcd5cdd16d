package control

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/recorder"
)

// A daemon that dies while the pod is drained must not leave it not ready for ever.
func TestDaemonThatDiesWhileThePodIsDrainedEndsTheRequestAndTheDrain(t *testing.T) {
	t.Parallel()
	request := storedRequest(t)
	request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(5))
	w := newAPIServer(t, testPod(), testNode(), request)
	w.change(taken)
	if _, again := w.settle(); again != 0 {
		t.Errorf("daemon ready, but reconciled again in %v", again)
	}
	recorder.Next(w.events)

	dead := daemonPod()
	dead.Status.Conditions[0].Status = corev1.ConditionFalse // as the node controller writes when the node is lost
	if err := w.Client.Status().Update(t.Context(), withVersionOf(t, w, dead)); err != nil {
		t.Fatal(err)
	}
	if got := w.reconciler.requestsOfPod(t.Context(), dead); len(got) != 1 || got[0] != key {
		t.Errorf("a change of the daemon's pod concerns %v", got)
	}
	if writes, again := w.settle(); len(writes) > 0 || again != 5*time.Minute {
		t.Errorf("not ready: wrote %q, reconciled again in %v", writes, again)
	}
	if err := w.Delete(t.Context(), dead); err != nil { // a short absence is an update of the DaemonSet
		t.Fatal(err)
	}
	w.now = w.now.Add(4 * time.Minute)
	back := daemonPod()
	if err := w.Create(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if writes, again := w.settle(); len(writes) > 0 || again != 0 {
		t.Errorf("ready again: wrote %q, reconciled again in %v", writes, again)
	}

	if err := w.Delete(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.now = w.now.Add(5 * time.Minute)
	w.settle()
	if pod := w.pod(); pod.Status.Conditions[1].Status != corev1.ConditionTrue {
		t.Errorf("the pod is still kept not ready: %+v", pod.Status.Conditions)
	}
	ended := w.request()
	if failed := meta.FindStatusCondition(ended.Status.Conditions, "Failed"); failed == nil || failed.Reason != "DaemonNotResponding" || len(ended.Finalizers) > 0 {
		t.Errorf("status %+v, finalizers %q", ended.Status, ended.Finalizers)
	}
	if text := recorder.Next(w.events); !strings.Contains(text, "Warning DaemonNotResponding") || !strings.Contains(text, "requested by alice: node pressure") {
		t.Errorf("event %q", text)
	}
	if text := recorder.Next(w.events); !strings.Contains(text, "Normal PodReadinessReturned") {
		t.Errorf("event of the drain's end %q", text)
	}
}

// A kruise-daemon that replaces refit-daemon completes what that has begun. It sees no pods, so the manager writes for it what
// became of the container, and does not miss a daemon.
func TestKruiseDaemonAloneCompletesWhatRefitDaemonHasBegun(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testPod(), testNode(), storedRequest(t))
	w.change(taken)
	restarted := w.pod()
	restarted.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://app2", RestartCount: 1, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	if err := w.Client.Status().Update(t.Context(), restarted); err != nil {
		t.Fatal(err)
	}
	if writes, again := w.settle(); len(writes) > 0 || again != 0 {
		t.Errorf("refit-daemon: wrote %q, reconciled again in %v", writes, again)
	}
	if err := w.Delete(t.Context(), daemonPod()); err != nil {
		t.Fatal(err)
	}
	if writes, again := w.settle(); len(writes) > 0 || again != 5*time.Minute {
		t.Errorf("no daemon: wrote %q, reconciled again in %v", writes, again)
	}

	kruise := daemonPod()
	kruise.Namespace, kruise.Name, kruise.Labels = "kruise-system", "kruise-daemon-x", map[string]string{"control-plane": "daemon"}
	if err := w.Create(t.Context(), kruise); err != nil {
		t.Fatal(err)
	}
	if got := w.reconciler.requestsOfPod(t.Context(), kruise); len(got) != 1 || got[0] != key {
		t.Errorf("a change of the daemon's pod concerns %v", got)
	}
	writes, again := w.settle()
	if diff := cmp.Diff([]string{"patch r/status", "patch r"}, writes); diff != "" || again != 0 {
		t.Errorf("kruise-daemon: reconciled again in %v, wrote (-want +got):\n%s", again, diff)
	}
	const snapshot = `[{"name":"app","ready":true,"restartCount":1,"containerID":"containerd://app2"}]`
	if got := w.request().Annotations[v1beta1.AnnotationSyncContainerStatuses]; got != snapshot {
		t.Errorf("annotation %s, want %s", got, snapshot)
	}
	w.now = w.now.Add(time.Hour)
	if writes, again := w.settle(); len(writes) > 0 || again != 0 {
		t.Errorf("an hour later: wrote %q, reconciled again in %v", writes, again)
	}
}

// A user who may create pods could otherwise keep the requests of others on a node from ending.
func TestPodOfAUserIsNotTakenForADaemon(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]map[string]string{
		"refit-daemon-y": {"app.kubernetes.io/name": "refit-daemon"}, "kruise-daemon-y": {"control-plane": "daemon"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAPIServer(t, testPod(), testNode(), storedRequest(t))
			w.change(taken)
			if err := w.Delete(t.Context(), daemonPod()); err != nil {
				t.Fatal(err)
			}
			pretender := daemonPod()
			pretender.Namespace, pretender.Name, pretender.Labels = "shop", name, labels
			if err := w.Create(t.Context(), pretender); err != nil {
				t.Fatal(err)
			}
			w.settle()
			w.now = w.now.Add(4 * time.Minute)
			w.reconciler.requestsOfPod(t.Context(), pretender)
			w.settle()
			w.now = w.now.Add(time.Minute)
			w.settle()
			ended := w.request()
			if failed := meta.FindStatusCondition(ended.Status.Conditions, "Failed"); failed == nil || failed.Reason != "DaemonNotResponding" {
				t.Errorf("status %+v", ended.Status)
			}
		})
	}
}

// Pods on virtual nodes have no daemon: a container of the pod carries the request out.
func TestRequestsOnVirtualNodesNeedNoDaemon(t *testing.T) {
	t.Parallel()
	request := storedRequest(t)
	request.Labels[v1beta1.LabelType] = v1beta1.TypeVirtualKubelet
	w := newAPIServer(t, testPod(), testNode(), request)
	w.change(taken)
	if err := w.Delete(t.Context(), daemonPod()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.now = w.now.Add(time.Hour)
	if writes, again := w.settle(); len(writes) > 0 || again != 0 {
		t.Errorf("wrote %q, reconciled again in %v", writes, again)
	}
}

func withVersionOf(t *testing.T, w *apiServer, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	var stored corev1.Pod
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(pod), &stored); err != nil {
		t.Fatal(err)
	}
	pod.ResourceVersion = stored.ResourceVersion
	return pod
}

// An earlier absence of the daemon, while no request of the node was in progress, does not count for the next request.
func TestDaemonIsAbsentSinceItWasLastReady(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testPod(), testNode(), storedRequest(t))
	if err := w.Delete(t.Context(), daemonPod()); err != nil {
		t.Fatal(err)
	}
	w.change(taken)
	w.settle() // sees that there is none
	w.change(recreated)
	w.settle()
	w.reconciler.requestsOfPod(t.Context(), daemonPod())

	w.now = w.now.Add(time.Hour) // another update of the daemon, which takes a request before it is ready
	if err := w.Delete(t.Context(), w.request()); err != nil {
		t.Fatal(err)
	}
	next := storedRequest(t)
	next.UID, next.CreationTimestamp.Time = "uid-next", w.now
	if err := w.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	w.change(taken)
	if writes, again := w.settle(); len(writes) > 0 || again != 5*time.Minute {
		t.Errorf("wrote %q, reconciled again in %v; want 5m: %+v", writes, again, w.request().Status)
	}
}
