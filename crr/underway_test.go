package crr_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/crrtest"
)

var underWayNow = time.Date(2026, 11, 25, 0, 30, 0, 0, time.UTC)

// underWayRequest of 10 s of grace stops app1 since 5 s and has not turned to log1.
func underWayRequest() *crr.Request {
	request := crrtest.UserRequest("app", "log")
	request.Labels = map[string]string{v1beta1.LabelPodUID: "uid-1"}
	request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: new(int64(10))}
	request.Spec.Containers[0].StatusContext = crrtest.StatusContext("app1", 3)
	request.Spec.Containers[1].StatusContext = crrtest.StatusContext("log1", 0)
	began := metav1.NewMicroTime(underWayNow.Add(-5 * time.Second))
	request.Status = crr.Status{
		Phase: v1beta1.ContainerRecreateRequestRecreating,
		ContainerRecreateStates: []v1beta1.ContainerRecreateRequestRecreateState{
			{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending, ContainerID: "containerd://app1", StopBegan: &began},
			{Name: "log", Phase: v1beta1.ContainerRecreateRequestPending},
		},
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: crr.ReasonAccepted}},
	}
	return request
}

// failed ends a request as at its deadline, so long ago.
func failed(request *crr.Request, ago time.Duration) {
	crr.Complete(&request.Status, crr.Outcome{Reason: crr.ReasonDeadlineExceeded, Message: "late"}, 1, underWayNow.Add(-ago))
}

// While a request, ended or not, is still stopping a container of a pod, no other pod of the workload may be restarted.
func TestStopIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(request *crr.Request, pod *corev1.Pod)
		want   bool
	}{
		"carried out": {func(*crr.Request, *corev1.Pod) {}, true},
		"carried out, nothing stopped yet (drain)": {func(r *crr.Request, _ *corev1.Pod) {
			r.Status.ContainerRecreateStates = nil
		}, true},
		"carried out, stopped and not started": {func(_ *crr.Request, pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{}
		}, true},
		"carried out by a kruise-daemon of old, by its record": {func(r *crr.Request, _ *corev1.Pod) {
			r.Status.Phase = v1beta1.ContainerRecreateRequestPending
		}, true},
		"waits for another request": {func(r *crr.Request, _ *corev1.Pod) {
			r.Status = crr.Status{Phase: v1beta1.ContainerRecreateRequestPending}
		}, false},
		"not seen by a daemon":                           {func(r *crr.Request, _ *corev1.Pod) { r.Status = crr.Status{} }, false},
		"another pod of this name":                       {func(_ *crr.Request, pod *corev1.Pod) { pod.UID = "uid-2" }, false},
		"the request does not say which pod of the name": {func(r *crr.Request, _ *corev1.Pod) { r.Labels = nil }, true},
		"another pod":                                    {func(_ *crr.Request, pod *corev1.Pod) { pod.Name = "db" }, false},
		"pod of another namespace":                       {func(_ *crr.Request, pod *corev1.Pod) { pod.Namespace = "bar" }, false},

		"failed during the stop": {func(r *crr.Request, _ *corev1.Pod) { failed(r, time.Second) }, true},
		"failed, kubelet has reported the end of the instance": {func(r *crr.Request, pod *corev1.Pod) {
			failed(r, time.Second)
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, true}, // kubelet starts the next one
		"failed, the instance has ended for good": {func(r *crr.Request, pod *corev1.Pod) {
			failed(r, time.Second)
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, false},
		"failed, the next instance runs": {func(r *crr.Request, pod *corev1.Pod) {
			failed(r, time.Second)
			pod.Status.ContainerStatuses[0].ContainerID = "containerd://app2"
		}, false},
		"failed, the container has no status": {func(r *crr.Request, pod *corev1.Pod) {
			failed(r, time.Second)
			pod.Status.ContainerStatuses = nil
		}, false},
		"failed, a native sidecar": {func(r *crr.Request, _ *corev1.Pod) {
			failed(r, time.Second)
			r.Status.ContainerRecreateStates[0].Name, r.Status.ContainerRecreateStates[0].ContainerID = "mesh", "containerd://mesh1"
		}, true},
		"failed before anything was stopped": {func(r *crr.Request, _ *corev1.Pod) {
			r.Status.ContainerRecreateStates[0] = v1beta1.ContainerRecreateRequestRecreateState{Name: "app"}
			failed(r, time.Second)
		}, false},
		"grace period and slack have nearly passed since the stop began": {func(r *crr.Request, _ *corev1.Pod) {
			failed(r, time.Second)
			*r.Status.ContainerRecreateStates[0].StopBegan = metav1.NewMicroTime(underWayNow.Add(-20*time.Second + time.Millisecond))
		}, true},
		"grace period and slack have passed since the stop began": {func(r *crr.Request, _ *corev1.Pod) {
			failed(r, time.Second)
			*r.Status.ContainerRecreateStates[0].StopBegan = metav1.NewMicroTime(underWayNow.Add(-20 * time.Second))
		}, false},
		"beginning not recorded: since the end of the request": {func(r *crr.Request, _ *corev1.Pod) {
			r.Status.ContainerRecreateStates[0].StopBegan = nil
			failed(r, 19*time.Second)
		}, true},
		"beginning not recorded, and that long ago": {func(r *crr.Request, _ *corev1.Pod) {
			r.Status.ContainerRecreateStates[0].StopBegan = nil
			failed(r, 20*time.Second)
		}, false},
		"a beginning after the end of the request is no later than it": {func(r *crr.Request, _ *corev1.Pod) {
			*r.Status.ContainerRecreateStates[0].StopBegan = metav1.NewMicroTime(underWayNow.Add(time.Hour))
			failed(r, 20*time.Second)
		}, false},
		"the pod's grace period": {func(r *crr.Request, _ *corev1.Pod) { // 7 s
			r.Spec.Strategy = nil
			r.Status.ContainerRecreateStates[0].StopBegan = nil
			failed(r, 17*time.Second)
		}, false},
		"no grace period anywhere: 30 s": {func(r *crr.Request, pod *corev1.Pod) {
			r.Spec.Strategy, pod.Spec.TerminationGracePeriodSeconds = nil, nil
			failed(r, time.Second)
			*r.Status.ContainerRecreateStates[0].StopBegan = metav1.NewMicroTime(underWayNow.Add(-39 * time.Second))
		}, true},
		"succeeded, but the pod's status is an old one": {func(r *crr.Request, _ *corev1.Pod) {
			crr.Complete(&r.Status, crr.Outcome{}, 1, underWayNow)
		}, true},
		"completed by somebody who gives no time": {func(r *crr.Request, _ *corev1.Pod) {
			failed(r, time.Second)
			r.Status.CompletionTime, r.Status.ContainerRecreateStates[0].StopBegan = nil, nil
		}, false},
		"being deleted during the stop": {func(r *crr.Request, _ *corev1.Pod) {
			r.DeletionTimestamp = new(metav1.NewTime(underWayNow.Add(-time.Second)))
		}, true},
		"deletion began long ago": {func(r *crr.Request, _ *corev1.Pod) {
			r.DeletionTimestamp = new(metav1.NewTime(underWayNow.Add(-time.Minute)))
		}, false},
		"the record is in an annotation": {func(r *crr.Request, _ *corev1.Pod) {
			failed(r, time.Second)
			r.Annotations = map[string]string{v1beta1.AnnotationInstances: `{"app":"containerd://app1"}`}
			r.Status.ContainerRecreateStates[0].ContainerID, r.Status.Conditions = "", nil
		}, true},
		"the record in an annotation has another container": {func(r *crr.Request, pod *corev1.Pod) {
			failed(r, time.Second)
			r.Annotations = map[string]string{v1beta1.AnnotationInstances: `{"app":"containerd://app1"}`}
			r.Status.ContainerRecreateStates[0].ContainerID, r.Status.Conditions = "", nil
			pod.Status.ContainerStatuses[0].ContainerID = "containerd://app2" // log1 runs, and nobody stops it
		}, false},
		"of kruise-daemon, which records nothing": {func(r *crr.Request, _ *corev1.Pod) {
			failed(r, time.Second)
			r.Status.ContainerRecreateStates[0].ContainerID, r.Status.Conditions = "", nil
		}, true},
		"of kruise-daemon, the next instances run": {func(r *crr.Request, pod *corev1.Pod) {
			failed(r, time.Second)
			r.Status.ContainerRecreateStates[0].ContainerID, r.Status.Conditions = "", nil
			pod.Status.ContainerStatuses[0].ContainerID, pod.Status.ContainerStatuses[1].ContainerID = "containerd://app2", "containerd://log2"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, pod := underWayRequest(), crrtest.WebPod()
			tt.change(request, pod)
			before := request.DeepCopy()
			if got := crr.StopUnderWay(request, pod, underWayNow); got != tt.want {
				t.Errorf("StopUnderWay = %v, want %v", got, tt.want)
			}
			if !equality.Semantic.DeepEqual(before, request) {
				t.Error("the request has been changed")
			}
		})
	}
	if crr.StopUnderWay(underWayRequest(), nil, underWayNow) {
		t.Error("under way on a pod that is not there")
	}
}
