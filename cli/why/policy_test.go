package why_test

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/why"
)

// policy is the InPlaceUpdatePolicy of Deployment web, in the middle of an update.
func policy() *v1alpha1.InPlaceUpdatePolicy {
	p := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gently"}}
	p.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	p.Status.MatchedPods, p.Status.UpdatedReadyPods, p.Status.UpdateRevision = 3, 1, "r2"
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUpdating, Message: "2 pods are left"}}
	return p
}

// A later update of labels or annotations records no container.
func TestLaterUpdateHasNotReplacedTheContainer(t *testing.T) {
	t.Parallel()
	p := pod()
	recorded(p, `{"revision":"r3","updateTimestamp":"2026-11-22T12:05:00Z","lastContainerStatuses":{}}`)
	containers := why.Explain(p, nil, []string{"app"})
	why.AddEvents(containers, p, []corev1.Event{event("k", "Killing", "app", "Container app definition changed, will be restarted", 1, -1)})
	why.AddUpdate(containers, p, policy())
	if got := containers[0]; got.Cause != why.CauseUpdate || got.Message != "replaced by an in-place update of the pod" || got.Policy != "" {
		t.Errorf("%+v", got)
	}
}

func TestUpdateByAPolicyIsNamed(t *testing.T) {
	t.Parallel()
	p := pod()
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d", Controller: new(true)}}
	p.Spec.Containers[0].Image = "app:2"
	p.Status.ContainerStatuses[0].ImageID = "sha256:2"
	p.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: `{"revision":"r2","updateTimestamp":"2026-11-22T11:59:57Z","lastContainerStatuses":{"app":{"imageID":"sha256:1"}},
		"refit":{"instances":{"app":{"containerID":"containerd://app1","image":"app:1"}}}}`}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-5d", OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", Controller: new(true)}}}}
	base := config(t)
	for name, tc := range map[string]struct {
		policy *v1alpha1.InPlaceUpdatePolicy
		words  []string
	}{
		"an update in progress": {policy(), []string{
			"UpdatedInPlace: replaced by an in-place update of the pod, by InPlaceUpdatePolicy gently, of 2026-11-22T11:59:57Z: image app:1 -> app:2",
			"InPlaceUpdatePolicy gently: 1 of 3 pods have the template and are available: Updating: 2 pods are left",
		}},
		"a pod that has failed": {func() *v1alpha1.InPlaceUpdatePolicy {
			of := policy()
			of.Status.Failures = []v1alpha1.PodFailure{{Pod: "web", Reason: "CrashLoopBackOff", Message: "back-off"}}
			return of
		}(), []string{"the update of this pod has failed: CrashLoopBackOff: back-off"}},
		"no policy": {nil, []string{"replaced by an in-place update of the pod, of 2026-11-22T11:59:57Z: image app:1 -> app:2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := []client.Object{p.DeepCopy(), set.DeepCopy()}
			if tc.policy != nil {
				objects = append(objects, tc.policy)
			}
			c := base
			c.Lines = 0
			c.API = fake.NewClientBuilder().WithScheme(base.API.(client.Client).Scheme()).WithObjects(objects...).
				WithIndex(&corev1.Event{}, "involvedObject.uid", func(client.Object) []string { return nil }).Build()
			var out bytes.Buffer
			if err := why.Run(t.Context(), c, &out, "web"); err != nil {
				t.Fatal(err)
			}
			for _, w := range tc.words {
				if !strings.Contains(out.String(), w) {
					t.Errorf("no %q in:\n%s", w, out.String())
				}
			}
		})
	}
}
