package workload

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/disruptions"
	"github.com/refit-project/refit/internal/kubelet"
)

// world is an API server with a Deployment of two pods, its policy, and the controller.
type world struct {
	client.Client
	t      *testing.T
	r      *reconciler
	now    time.Time
	events chan string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionregistrationv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, now: time.Now().Truncate(time.Second)}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "log", Image: "log:1"}}}
	template.Spec.Containers[0].Resources.Requests = cpu("10m")
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(w.now)}
	}
	deployment := &appsv1.Deployment{ObjectMeta: named("web")}
	deployment.Spec = appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template}
	set := &appsv1.ReplicaSet{ObjectMeta: named("web-a")}
	set.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1", "kubernetes.io/change-cause": "the first"}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsKind("Deployment"))}
	set.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: deployment.Spec.Selector, Template: *template.DeepCopy()}
	set.Spec.Template.Labels["pod-template-hash"] = "a"
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "refit-hold"}}
	objects := []client.Object{deployment, set, w.policy("web"), binding}
	for i := range 2 {
		pod := &corev1.Pod{ObjectMeta: named(fmt.Sprintf("web-a-%d", i)), Spec: *template.Spec.DeepCopy()}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsKind("ReplicaSet"))}
		pod.Spec.NodeName = "node"
		objects = append(objects, pod)
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.InPlaceUpdatePolicy{}, &corev1.Pod{}).
		WithIndex(&v1alpha1.InPlaceUpdatePolicy{}, byTarget, targetOf).Build()
	w.events = make(chan string, 1000)
	clock := func() time.Time { return w.now }
	w.r = newReconciler(w.Client, Config{
		Live: w.Client, Clock: clock, Disruptions: disruptions.NewLedger(clock), Recorder: &events.FakeRecorder{Events: w.events},
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	w.rounds(3)
	return w
}

func (w *world) policy(name string) *v1alpha1.InPlaceUpdatePolicy {
	p := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("policy-" + name), CreationTimestamp: metav1.NewTime(w.now)}}
	p.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	return p
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) reconcile(name string) {
	w.t.Helper()
	w.reconciled(name)
}

// reconciled returns when to reconcile the policy again without an event; 0 if never.
func (w *world) reconciled(name string) time.Duration {
	w.t.Helper()
	result, err := conflict.Reconciler(w.r).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}})
	w.check(err)
	return result.RequeueAfter
}

// rounds lets kubelet and the controller act in turn.
func (w *world) rounds(n int) {
	w.t.Helper()
	for range n {
		for _, pod := range w.pods() {
			w.kubelet(w.t.Context(), &pod)
		}
		w.reconcile("web")
		w.now = w.now.Add(2 * time.Second)
	}
}

func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	w.check(w.List(w.t.Context(), &list, client.InNamespace("shop")))
	return list.Items
}

// kubelet runs what is in the spec: a changed container is ready a round later.
func (w *world) kubelet(ctx context.Context, pod *corev1.Pod) {
	w.t.Helper()
	ready := corev1.ConditionTrue
	statuses := make([]corev1.ContainerStatus, len(pod.Spec.Containers))
	for i, c := range pod.Spec.Containers {
		statuses[i] = corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "id of " + c.Image, ContainerID: "containerd://" + c.Image, Ready: true}
		statuses[i].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}
		if old := kubelet.StatusOf(pod, c.Name); old == nil || old.Image != c.Image {
			statuses[i].Ready, ready = false, corev1.ConditionFalse
		}
	}
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, statuses
	if c := kubelet.Condition(&pod.Status, corev1.PodReady); c == nil || c.Status != ready {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(w.now)}}
	}
	w.check(w.Status().Update(ctx, pod))
}

// edit changes the Deployment as a user does; the API server holds it in the same write.
func (w *world) edit(change func(*corev1.PodTemplateSpec)) {
	w.t.Helper()
	d := w.deployment()
	change(&d.Spec.Template)
	d.Labels[v1alpha1.LabelHeld], d.Spec.Paused = "true", true
	w.check(w.Update(w.t.Context(), d))
}

func cpu(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}

func (w *world) deployment() *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, d))
	return d
}

func (w *world) condition(name, kind string) string {
	w.t.Helper()
	p := &v1alpha1.InPlaceUpdatePolicy{}
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, p))
	c := meta.FindStatusCondition(p.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func TestDeploymentFollowsItsTemplateAndKeepsItsHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.condition("web", v1alpha1.ConditionReady); got != "True Completed" {
		t.Fatalf("%s before the update", got)
	}
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" })
	w.rounds(20)
	for _, pod := range w.pods() {
		if pod.Spec.Containers[0].Image != "app:2" || pod.Spec.Containers[1].Image != "log:1" {
			t.Errorf("%s has %s and %s", pod.Name, pod.Spec.Containers[0].Image, pod.Spec.Containers[1].Image)
		}
	}
	var sets appsv1.ReplicaSetList
	w.check(w.List(t.Context(), &sets))
	templates := map[int32]string{}
	for _, set := range sets.Items {
		templates[*set.Spec.Replicas] = set.Spec.Template.Spec.Containers[0].Image
		hash := set.Spec.Template.Labels["pod-template-hash"]
		if *set.Spec.Replicas == 0 && (hash == "" || set.Spec.Selector.MatchLabels["pod-template-hash"] != hash || set.Annotations["deployment.kubernetes.io/revision"] != "1") {
			t.Errorf("ReplicaSet of the history: %+v, annotations %v", set.Spec, set.Annotations)
		}
		if got := set.Annotations["kubernetes.io/change-cause"]; *set.Spec.Replicas == 0 && got != "the first" {
			t.Errorf("kubectl rollout history shows %q for the former template", got)
		}
	}
	if len(sets.Items) != 2 || templates[2] != "app:2" || templates[0] != "app:1" {
		t.Errorf("ReplicaSets by replicas: %v", templates)
	}
	if d := w.deployment(); d.Spec.Paused || d.Labels[v1alpha1.LabelHeld] != "" {
		t.Errorf("it is still held: paused %t, labels %v", d.Spec.Paused, d.Labels)
	}
	if got := w.condition("web", v1alpha1.ConditionReady); got != "True Completed" {
		t.Errorf("%s after the update", got)
	}
}

func TestOldestPolicyOfAWorkloadIsAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.check(w.Create(t.Context(), w.policy("another")))
	w.reconcile("another")
	if got := w.condition("another", v1alpha1.ConditionAccepted); got != "False Conflicted" {
		t.Errorf("the newer one: %s", got)
	}
	if got := w.condition("web", v1alpha1.ConditionAccepted); got != "True Accepted" {
		t.Errorf("the older one: %s", got)
	}
}

// An API server that has just started holds a workload by its label.
func TestWorkloadOfAPolicyHasTheLabelByWhichItIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rounds(2)
	if d := w.deployment(); d.Labels[v1alpha1.LabelHoldUID] != string(d.UID) {
		t.Errorf("labels %v of the Deployment %s", d.Labels, d.UID)
	}
	w.check(w.Delete(t.Context(), w.policy("web")))
	w.rounds(3)
	if labels := w.deployment().Labels; labels[v1alpha1.LabelHoldUID] != "" {
		t.Errorf("labels %v after the policy was deleted", labels)
	}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &v1alpha1.InPlaceUpdatePolicy{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the policy is still there: %v", err)
	}
}

func TestDeletedPolicyStaysUntilItsWorkloadIsReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" })
	w.rounds(2)
	w.check(w.Delete(t.Context(), w.policy("web")))
	p := &v1alpha1.InPlaceUpdatePolicy{}
	w.check(w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, p))
	w.rounds(20)
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, p); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the policy is still there: %v, %v", err, p.Finalizers)
	}
	if d := w.deployment(); d.Spec.Paused {
		t.Error("the Deployment is still paused")
	}
	for _, pod := range w.pods() {
		if pod.Spec.Containers[0].Image != "app:2" {
			t.Errorf("%s has %s", pod.Name, pod.Spec.Containers[0].Image)
		}
	}
}
