package control

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/jobplan"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/test/kit/recorder"
)

// The API server checks no operator of a selector. Such a job had no condition and was never deleted.
func TestAJobWithAnUnreadableSelectorHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob(func(j *v1beta1.ImagePullJob) {
		j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(5))
		j.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Foo"}}}}
	}))
	w.reconcile((&jobs{w.api}).Reconcile, pullJob())
	status := w.job("j").Status
	failed := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionPullFailed)
	if status.CompletionTime == nil || failed == nil || failed.Status != metav1.ConditionTrue || failed.Reason != jobplan.ReasonInvalidSelector || !strings.Contains(status.Message, "Foo") {
		t.Fatalf("%+v", status)
	}
	w.now = w.now.Add(time.Minute)
	w.reconcile((&jobs{w.api}).Reconcile, pullJob())
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(pullJob()), &v1beta1.ImagePullJob{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its TTL: %v", err)
	}
}

func TestWhichNodesAJobSelects(t *testing.T) {
	t.Parallel()
	pod := func(namespace, node string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "on-" + node, Labels: map[string]string{"app": "game"}}}
		p.Spec.NodeName, p.Status.Phase = node, phase
		return p
	}
	leaving := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "leaving", Labels: map[string]string{"pool": "game"}, Finalizers: []string{"example.com/mine"}}}
	w := newWorld(t, node("a", map[string]string{"pool": "game"}), node("b", map[string]string{"pool": "game"}), node("c", nil), leaving,
		pod("shop", "a", corev1.PodRunning), pod("shop", "b", corev1.PodSucceeded), pod("other", "c", corev1.PodRunning), pod("shop", "", corev1.PodPending))
	for _, name := range []string{"a", "b", "c"} {
		w.reconcile((&nodeImages{w.api}).Reconcile, node(name, nil))
	}
	w.check(w.Delete(t.Context(), leaving))
	pool := metav1.LabelSelector{MatchLabels: map[string]string{"pool": "game"}}
	app := metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	for name, tt := range map[string]struct {
		change func(*v1beta1.ImagePullJobSpec)
		want   string
	}{
		"all": {func(*v1beta1.ImagePullJobSpec) {}, "a b c"},
		"by names": {func(s *v1beta1.ImagePullJobSpec) {
			s.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{"c", "none"}}
		}, "c"},
		"by labels": {func(s *v1beta1.ImagePullJobSpec) { s.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: pool} }, "a b"},
		"names come first": {func(s *v1beta1.ImagePullJobSpec) {
			s.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{"c"}, LabelSelector: pool}
		}, "c"},
		"by pods": {func(s *v1beta1.ImagePullJobSpec) {
			s.PodSelector = &v1beta1.ImagePullJobPodSelector{LabelSelector: app}
		}, "a"},
		"nodes come first": {func(s *v1beta1.ImagePullJobSpec) {
			s.Selector, s.PodSelector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: pool}, &v1beta1.ImagePullJobPodSelector{LabelSelector: app}
		}, "a b"},
	} {
		job := pullJob()
		tt.change(&job.Spec)
		nodes, err := (&jobs{w.api}).selected(t.Context(), job)
		w.check(err)
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestTheEndOfAJobIsTold(t *testing.T) {
	t.Parallel()
	for phase, want := range map[v1beta1.ImagePullPhase]string{
		v1beta1.ImagePhaseSucceeded: "Normal Pulled 1 of 1 nodes have the image: all nodes have the image",
		v1beta1.ImagePhaseFailed:    "Warning PullFailed 0 of 1 nodes have the image: 1 of 1 nodes failed, for example a: said so",
	} {
		w := newWorld(t, node("a", nil), pullJob())
		w.look()
		recorder.Want(t, w.events())
		w.daemon("a", phase)
		w.look()
		recorder.Want(t, w.events(), want)
		w.look() // once
		recorder.Want(t, w.events())
	}
}

// A job with the default parallelism begins on one node, and looks again when it is told to.
func TestWhenAJobIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), node("b", nil), pullJob(func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = new(intstr.FromInt32(1)) }))
	for _, name := range []string{"a", "b"} {
		w.reconcile((&nodeImages{w.api}).Reconcile, node(name, nil))
	}
	key := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pullJob())}
	for _, want := range []time.Duration{0, 10 * time.Second} { // when it has begun, the node may not pull yet
		if result, err := (&jobs{w.api}).Reconcile(t.Context(), key); err != nil || result.RequeueAfter != want {
			t.Errorf("%+v, %v, want another look after %s", result, err, want)
		}
	}
	for at, want := range map[time.Time]time.Duration{{}: 0, w.now.Add(5 * time.Second): 5 * time.Second, w.now: time.Second, w.now.Add(-time.Hour): time.Second} {
		if got := w.api.later(recheck.On(at)).RequeueAfter; got != want {
			t.Errorf("at %s: after %s, want %s", at, got, want)
		}
	}
}

// The node owns its NodeImage, beside whoever owned it before.
func TestTheOwnersOfANodeImage(t *testing.T) {
	t.Parallel()
	theirs := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Node", Name: "a", UID: "theirs"}
	machine := metav1.OwnerReference{APIVersion: "v1", Kind: "Machine", Name: "a", UID: "machine"}
	w := newWorld(t, nodeWithUID("a", "first"), nodeWithUID("b", "second"),
		&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1, OwnerReferences: []metav1.OwnerReference{theirs, machine}}})
	w.look()
	want := []metav1.OwnerReference{theirs, machine, {APIVersion: "v1", Kind: "Node", Name: "a", UID: "first"}}
	if diff := cmp.Diff(want, w.nodeImage("a").OwnerReferences); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "b", UID: "second"}}, w.nodeImage("b").OwnerReferences); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing is pulled on a node that goes, or that is none with a container runtime.
func TestANodeThatLeavesOrIsVirtualHasNoNodeImage(t *testing.T) {
	t.Parallel()
	leaving := node("a", nil)
	leaving.Finalizers = []string{"example.com/mine"}
	w := newWorld(t, leaving, node("b", nil))
	w.look()
	w.nodeImage("a")
	w.check(w.Delete(t.Context(), leaving))
	var b corev1.Node
	w.check(w.Get(t.Context(), client.ObjectKey{Name: "b"}, &b))
	b.Labels = map[string]string{"type": "virtual-kubelet"}
	w.check(w.Update(t.Context(), &b))
	w.look()
	var list v1beta1.NodeImageList
	w.check(w.List(t.Context(), &list))
	if len(list.Items) != 0 {
		t.Errorf("%d NodeImages", len(list.Items))
	}
}
