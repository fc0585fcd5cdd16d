package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// fixture is an API server with Deployment web, whose two pods are of ReplicaSet web-2, the ReplicaSet web-1 before that, and
// refit-manager.
type fixture struct {
	config policy.SetConfig
	out    bytes.Buffer
	// holds says that the API server holds the Deployment in the write that changes its template.
	holds bool
	// accepts is what refit-manager says of a new policy, and ends what it says after a change of the template; nil says nothing.
	accepts, ends func(*v1alpha1.InPlaceUpdatePolicyStatus)
	err           error // answer to a change of the Deployment
	// lost is returned instead of the answer to a change of the Deployment that is stored; nil loses none.
	lost   func(context.Context) error
	paused bool // by the owner
}

func template(image string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	t.Spec.Containers = []corev1.Container{
		{Name: "app", Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}, {Name: "log", Image: "log:1"},
	}
	return t
}

func replicaSet(name, image, revision string) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"deployment.kubernetes.io/revision": revision},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web", Controller: new(true)}},
	}}
	set.Spec.Template = template(image)
	set.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = name
	set.Spec.Replicas = new(int32(0))
	return set
}

func pod(name string) *corev1.Pod {
	of := template("app:2")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}, Annotations: map[string]string{}}, Spec: of.Spec}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-2", UID: "web-2", Controller: new(true)}}
	p.Spec.NodeName = "node-1"
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{holds: true, accepts: accepted, ends: done}
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Generation: 2}}
	deployment.Spec = appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template("app:2")}
	deployment.Status.ObservedGeneration = 2
	now := replicaSet("web-2", "app:2", "2")
	now.Spec.Replicas = new(int32(2))
	objects = append(objects, deployment, replicaSet("web-1", "app:1", "1"), now, pod("web-2-a"), pod("web-2-b"))
	api := fake.NewClientBuilder().WithScheme(kinds).WithStatusSubresource(&v1alpha1.InPlaceUpdatePolicy{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{Patch: f.patch, Create: f.create}).Build()
	f.config = policy.SetConfig{Config: policy.Config{API: api, Namespace: "shop", Output: console.NewOutput(&f.out, false)}, CreatePolicy: true, Wait: true}
	return f
}

// create is what the API server does with a new policy, and refit-manager after it.
func (f *fixture) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(opts)
	o.SetGeneration(1)
	if err := c.Create(ctx, o, opts...); err != nil || len(options.DryRun) > 0 {
		return err
	}
	return f.manager(ctx, c, f.accepts)
}

// patch is what the API server does with a change of the Deployment or the policy, and refit-manager after it.
func (f *fixture) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	var options client.PatchOptions
	options.ApplyOptions(opts)
	d, ok := o.(*appsv1.Deployment)
	if !ok {
		return c.Patch(ctx, o, p, opts...)
	}
	if f.err != nil {
		return f.err
	}
	var before appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), &before); err != nil {
		return err
	}
	patch, err := p.Data(o)
	if err != nil {
		return err
	}
	after, err := strategicpatch.StrategicMergePatch(must.JSON(before), patch, before)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(after, d); err != nil {
		return err
	}
	if d.Generation++; f.holds {
		d.Labels, d.Spec.Paused = map[string]string{v1alpha1.LabelHeld: "true"}, true
	}
	if len(options.DryRun) > 0 {
		return nil
	}
	if err := c.Update(ctx, d); err != nil {
		return err
	}
	if err := f.manager(ctx, c, f.ends); err != nil || f.lost == nil {
		return err
	}
	return f.lost(ctx)
}

// manager writes the status of the policy.
func (f *fixture) manager(ctx context.Context, c client.WithWatch, says func(*v1alpha1.InPlaceUpdatePolicyStatus)) error {
	var list v1alpha1.InPlaceUpdatePolicyList
	if err := c.List(ctx, &list); err != nil || len(list.Items) == 0 || says == nil {
		return err
	}
	p := &list.Items[0]
	var d appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, &d); err != nil {
		return err
	}
	p.Status.ObservedGeneration, p.Status.ObservedTargetGeneration = p.Generation, d.Generation
	says(&p.Status)
	return c.Status().Update(ctx, p)
}

func says(status *v1alpha1.InPlaceUpdatePolicyStatus, kind string, is metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message})
}

func accepted(status *v1alpha1.InPlaceUpdatePolicyStatus) {
	status.ObservedTargetGeneration--
	says(status, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "")
}

// labelsLater is what refit-manager says before the workload has the label by which the API server holds it.
func labelsLater(status *v1alpha1.InPlaceUpdatePolicyStatus) {
	says(status, v1alpha1.ConditionAccepted, metav1.ConditionUnknown, v1alpha1.ReasonNotHeld, "")
}

func done(status *v1alpha1.InPlaceUpdatePolicyStatus) {
	status.UpdateRevision = "r3"
	status.MatchedPods, status.UpdatedPods, status.UpdatedReadyPods = 2, 2, 2
	says(status, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonCompleted, "all pods have the template")
	says(status, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonCompleted, "all pods have the template and are available")
}

// progresses returns what refit-manager says of an update that has not ended.
func progresses(is metav1.ConditionStatus, reason, message string, more ...func(*v1alpha1.InPlaceUpdatePolicyStatus)) func(*v1alpha1.InPlaceUpdatePolicyStatus) {
	return func(status *v1alpha1.InPlaceUpdatePolicyStatus) {
		status.UpdateRevision = "r3"
		status.MatchedPods, status.UpdatedPods, status.UpdatedReadyPods = 2, 1, 1
		says(status, v1alpha1.ConditionProgressing, is, reason, message)
		says(status, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
		if is == metav1.ConditionFalse {
			says(status, v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
		}
		for _, change := range more {
			change(status)
		}
	}
}

// existing is a policy of the Deployment that refit-manager has accepted.
func existing(change func(*v1alpha1.InPlaceUpdatePolicy)) *v1alpha1.InPlaceUpdatePolicy {
	p := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gently", UID: "gently", Generation: 1}}
	p.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	p.Status.ObservedGeneration, p.Status.ObservedTargetGeneration = 1, 2
	says(&p.Status, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "")
	done(&p.Status)
	if change != nil {
		change(p)
	}
	return p
}

var web = policy.Target{Kind: "Deployment", Name: "web"}

func image(to string) policy.Change {
	return func(t *corev1.PodTemplateSpec) error {
		t.Spec.Containers[0].Image = to
		return nil
	}
}

func (f *fixture) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	if err := f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

func (f *fixture) policies(t *testing.T) []v1alpha1.InPlaceUpdatePolicy {
	t.Helper()
	var list v1alpha1.InPlaceUpdatePolicyList
	if err := f.config.API.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// expects fails the test unless a command has ended with the code, and has said the words.
func (f *fixture) expects(t *testing.T, err error, code int, words ...string) {
	t.Helper()
	said := f.out.String()
	if err != nil {
		said += err.Error()
	}
	if console.ExitCode(err) != code {
		t.Errorf("exit code %d, want %d:\n%s", console.ExitCode(err), code, said)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("no %q in:\n%s", w, said)
		}
	}
}
