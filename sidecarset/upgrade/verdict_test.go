package upgrade_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// It would hold up the others for ever, or be forgotten while its container is down.
func TestAPodThatCannotBeJudgedIsInFlightOnlyIfItWas(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	for name, tt := range map[string]struct {
		before rollout.Pod
		want   bool
	}{
		"it was":                      {rollout.Pod{UID: "u", InFlight: true}, true},
		"it was not":                  {rollout.Pod{UID: "u"}, false},
		"the pod before of that name": {rollout.Pod{UID: "another", InFlight: true}, false},
		"nothing is known of it":      {rollout.Pod{}, false},
	} {
		got := upgrade.Unjudged(pod, &tt.before)
		if got.InFlight != tt.want || !got.Unjudged || got.Ready || got.State != rollout.NotUpgradable {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTheFleetKeepsWhatTheVerdictAndThePodSay(t *testing.T) {
	t.Parallel()
	created, since, retry := time.Unix(1000, 0), time.Unix(2000, 0), time.Unix(3000, 0)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u", Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(created),
		OwnerReferences: []metav1.OwnerReference{{UID: "somebody"}, {UID: "set", Controller: new(true)}},
	}}
	pod.Spec.NodeName = "node"
	pod.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}},
		ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 2}, {RestartCount: 3}},
	}
	base := rollout.Pod{
		Key: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "u", Workload: "set", Labels: pod.Labels, Created: created, Scheduled: true, Phase: corev1.PodRunning, Restarts: 5,
	}
	for name, tt := range map[string]struct {
		verdict upgrade.Verdict
		beside  budget.Pod
		retry   time.Time
		want    func(*rollout.Pod)
	}{
		"state":         {verdict: upgrade.Verdict{State: rollout.Outdated}, want: func(p *rollout.Pod) { p.State = rollout.Outdated }},
		"in flight":     {verdict: upgrade.Verdict{InFlight: true}, want: func(p *rollout.Pod) { p.InFlight = true }},
		"failed":        {verdict: upgrade.Verdict{Failed: true}, want: func(p *rollout.Pod) { p.Failed = true }},
		"broken before": {verdict: upgrade.Verdict{BrokenBefore: true}, want: func(p *rollout.Pod) { p.BrokenBefore = true }},
		"original":      {verdict: upgrade.Verdict{Original: true}, want: func(p *rollout.Pod) { p.Original = true }},
		"stops":         {verdict: upgrade.Verdict{Stops: true}, want: func(p *rollout.Pod) { p.Stops = true }},
		"under way":     {beside: budget.Pod{UnderWay: true}, want: func(p *rollout.Pod) { p.UnderWay = true }},
		"stuck":         {beside: budget.Pod{Stuck: true}, want: func(p *rollout.Pod) { p.Stuck = true }},
		"ready":         {beside: budget.Pod{Ready: true}, want: func(p *rollout.Pod) { p.Ready, p.ReadySince = true, since }},
		"tried again":   {retry: retry, want: func(p *rollout.Pod) { p.RetryAt = retry }},
	} {
		want := base
		tt.want(&want)
		if diff := cmp.Diff(want, tt.verdict.Pod(pod, &tt.beside, tt.retry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	pod.Spec.NodeName, pod.OwnerReferences = "", pod.OwnerReferences[:1]
	if got := (&upgrade.Verdict{}).Pod(pod, &budget.Pod{}, time.Time{}); got.Scheduled || got.Workload != "" {
		t.Errorf("a pod of nobody that is not scheduled: %+v", got)
	}
}

func TestOnlyPodsThatRunOnAreUpdated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"running":       {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }, true},
		"pending":       {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }, true},
		"being deleted": {func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }, false},
		"succeeded":     {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }, false},
		"failed":        {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, false},
		"its sidecars are ended": {func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue}}
		}, false},
		"its sidecars are not ended": {func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionFalse}}
		}, true},
		"it has another condition":  {func(pod *corev1.Pod) { pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}} }, true},
		"nothing is known about it": {func(*corev1.Pod) {}, true},
	} {
		pod := &corev1.Pod{}
		tt.change(pod)
		if got := upgrade.Active(pod); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// An obstacle counts more than a hot upgrade that was given up, and what was given up more than that the pod is outdated.
func TestWhatAVerdictSaysFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot))
	w.image("proxy:2")
	if v := w.judge(); v.InPlace || v.State != rollout.Outdated {
		t.Errorf("before an update: %+v", v)
	}
	w.pod.Annotations[v1beta1.AnnotationSidecarSetAborted] = `{"logs":"` + w.target.Hashes.Full + `"}`
	w.is("Aborted: the new container of a hot upgrade did not take over in time")
	if v := w.target.Judge(w.pod, []string{"one", "two"}, w.now); v.State != rollout.NotUpgradable || v.Message != "one; two" || !v.Stops {
		t.Errorf("with obstacles: %+v", v)
	}
	w.pod.Annotations[v1beta1.AnnotationSidecarSetAborted] = `{"mesh":"` + w.target.Hashes.Full + `"}` // of another SidecarSet
	w.is("Outdated")
	w.update()
	if v := w.judge(); !v.InPlace || v.Original {
		t.Errorf("after an update: %+v", v)
	}
	w = newWorld(t, cold("log", "log:1"))
	w.image("log:2")
	w.update()
	if v := w.judge(); !v.InPlace || v.Original {
		t.Errorf("after an update: %+v", v)
	}
}
