package rollout_test

import (
	"fmt"
	"reflect"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout"
	podbudget "github.com/refit-project/refit/rollout/budget"
)

var start = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// fixture is a workload with its pods, the daemons that carry out requests, and a rollout.
type fixture struct {
	rollout  *v1alpha1.RestartRollout
	observed rollout.Observation
	now      time.Time
	last     rollout.Decision
}

func newFixture(pods int, change ...func(*v1alpha1.RestartRolloutSpec)) *fixture {
	f := &fixture{now: start, rollout: &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "rollout", Generation: 1, CreationTimestamp: metav1.NewTime(start),
		Annotations: map[string]string{v1beta1.AnnotationRequestedBy: "alice", v1beta1.AnnotationReason: "leak"},
	}}}
	f.rollout.Spec = v1alpha1.RestartRolloutSpec{
		TargetRef:  &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"},
		Containers: v1alpha1.RolloutContainers("app"),
	}
	for _, c := range change {
		c(&f.rollout.Spec)
	}
	for i := range pods {
		f.observed.Pods = append(f.observed.Pods, newPod(i, start.Add(-time.Hour)))
	}
	return f
}

func newPod(i int, created time.Time) *corev1.Pod {
	name := fmt.Sprintf("web-%d", i)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(created), Labels: map[string]string{"app": "web"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "log"}}
	pod.Status.Phase = corev1.PodRunning
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, ContainerID: "containerd://" + name + container.Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	setReady(pod, true, created)
	return pod
}

func setReady(pod *corev1.Pod, ready bool, at time.Time) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(at)}}
}

// next decides, and checks that the decision is the same with pods as a cache has them.
func (f *fixture) next() rollout.Decision {
	decision := rollout.Next(f.rollout, f.observed, f.now)
	cached := f.observed
	cached.Pods, cached.Others = trimmed(f.observed.Pods), trimmed(f.observed.Others)
	if got := rollout.Next(f.rollout, cached, f.now); !reflect.DeepEqual(decision, got) {
		panic("the decision with cached pods (-pods +cached):\n" + cmp.Diff(decision, got))
	}
	return decision
}

func trimmed(pods []*corev1.Pod) []*corev1.Pod {
	trimmer := trim.NewPods(trim.Part{Keep: podbudget.Keep, Bound: podbudget.Bound})
	kept := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		kept[i] = trimmer.Of(pod)
	}
	return kept
}

// look decides, and carries that out: requests are admitted, and the status is stored.
func (f *fixture) look() []string {
	f.last = f.next()
	f.rollout.Status = f.last.Status
	var started []string
	for _, request := range f.last.Start {
		started = append(started, request.Spec.PodName)
		pod := f.pod(request.Spec.PodName)
		for i := range request.Spec.Containers {
			status := kubelet.StatusIn(pod.Status.ContainerStatuses, request.Spec.Containers[i].Name)
			request.Spec.Containers[i].StatusContext = &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: status.ContainerID}
		}
		f.observed.Requests = append(f.observed.Requests, request)
	}
	return started
}

func (f *fixture) pod(name string) *corev1.Pod {
	for _, pod := range f.observed.Pods {
		if pod.Name == name {
			return pod
		}
	}
	return nil
}

func (f *fixture) request(pod string) *v1beta1.ContainerRecreateRequest {
	for _, request := range f.observed.Requests {
		if request.Spec.PodName == pod {
			return request
		}
	}
	return nil
}

// restart carries out the request of a pod, and shows that in the pod's status.
func (f *fixture) restart(pods ...string) {
	for _, name := range pods {
		crr.Complete(&f.request(name).Status, crr.Outcome{}, 1, f.now)
		pod := f.pod(name)
		pod.Status.ContainerStatuses[0].ContainerID += "'"
		setReady(pod, true, f.now)
	}
}

// replace shows in the status of a pod that its container is another instance.
func (f *fixture) replace(pod string) { f.pod(pod).Status.ContainerStatuses[0].ContainerID += "'" }

// stopping lets the request of a pod begin to stop its container.
func (f *fixture) stopping(pod string) {
	request := f.request(pod)
	request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{
		Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: f.pod(pod).Status.ContainerStatuses[0].ContainerID,
	}}
}

// fail ends the request of a pod, as its container cannot be stopped.
func (f *fixture) fail(pod string) {
	crr.Complete(&f.request(pod).Status, crr.Outcome{Reason: crr.ReasonStopFailed, Message: "runtime is gone"}, 1, f.now)
}

func (f *fixture) condition(kind string) (metav1.ConditionStatus, string) {
	for _, c := range f.rollout.Status.Conditions {
		if c.Type == kind {
			return c.Status, c.Reason
		}
	}
	return "", ""
}

func maxUnavailable(value string) func(*v1alpha1.RestartRolloutSpec) {
	return func(s *v1alpha1.RestartRolloutSpec) { s.MaxUnavailable = new(intstr.Parse(value)) }
}

func budget(allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}
