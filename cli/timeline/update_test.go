package timeline_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/timeline"
	"github.com/refit-project/refit/internal/console"
)

// updated is a pod of a StatefulSet whose container app was replaced by an update to a revision.
func updated(name, set, revision string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: set, Controller: new(true)}}}}
	p.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: `{"revision":"` + revision + `","updateTimestamp":"2026-11-22T12:00:00Z","lastContainerStatuses":{"app":{"imageID":"sha256:1"}},
		"refit":{"instances":{"app":{"containerID":"containerd://old","image":"app:1"}},"written":"2026-11-22T12:00:00.250000Z"}}`}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:2"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://new", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(2000)}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://old", FinishedAt: second(1000)}},
	}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: second(3000)}}
	return p
}

func TestTimelineOfAnUpdateByAPolicy(t *testing.T) {
	t.Parallel()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	policy.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	policy.Status.UpdateRevision, policy.Status.MatchedPods, policy.Status.UpdatedReadyPods = "web-2", 2, 1
	policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUpdating}}
	stopping := updated("web-0", "web", "web-2")
	stopping.Status.ContainerStatuses[0].ContainerID = "containerd://old"
	stopping.Status.Conditions = nil
	api := fake.NewClientBuilder().WithScheme(kinds).WithObjects(policy, updated("web-1", "web", "web-2"), stopping, updated("db-0", "db", "web-2"), updated("web-2", "web", "web-1")).Build()
	target, err := timeline.ParseTarget("iup/web")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := timeline.Run(t.Context(), timeline.Config{API: api, Namespace: "shop"}, &out, target); err != nil {
		t.Fatal(err)
	}
	const record = "annotation " + v1beta1.AnnotationInPlaceUpdateState + " of the pod\n"
	want := `inplaceupdatepolicy/web: statefulset/web, Updating

TIME (UTC)     AFTER    POD     CONTAINER   WHAT                        RECORDED BY
12:00:00       ~0s      web-0   -           update of the pod began     ` + record +
		`12:00:00       ~0s      web-1   -           update of the pod began     ` + record +
		`12:00:00.250   0.250s   web-0   -           update written to the pod   ` + record +
		`-              -        web-0   app         previous instance ended     not yet: the container is being stopped
-              -        web-0   app         new instance started        not yet: the container is being stopped
-              -        web-0   -           containers ready            not yet: the pod's condition ContainersReady is not True
12:00:00.250   0.250s   web-1   -           update written to the pod   ` + record +
		`12:00:01       ~1s      web-1   app         previous instance ended     lastState of the container
12:00:02       ~2s      web-1   app         new instance started        state of the container
12:00:03       ~3s      web-1   -           containers ready            condition ContainersReady of the pod
` + footer
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := timeline.Run(t.Context(), timeline.Config{API: api, Namespace: "shop", Format: "svg"}, &out, target); console.ExitCode(err) != console.ExitRefused {
		t.Errorf("svg: %v", err)
	}
}
