package budget_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Else all pods of a workload whose readiness fails for 4 s are taken out one after the other, and take longer to be ready again.
func TestAPodThatHasNotBeenReadySinceItsRestartOrUpdateIsUnderWay(t *testing.T) {
	t.Parallel()
	running := func(ago time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			instance("cri://2")(pod)
			pod.Status.ContainerStatuses[0].Ready = true // and another one is not
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-ago))}}
		}
	}
	request := func(ago time.Duration) []*v1beta1.ContainerRecreateRequest {
		r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-ago))}}
		r.Spec = v1beta1.ContainerRecreateRequestSpec{PodName: "web-0", Containers: []v1beta1.ContainerRecreateRequestContainer{
			{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "cri://1"}},
		}}
		r.Status.Phase, r.Status.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, &metav1.Time{Time: now}
		return []*v1beta1.ContainerRecreateRequest{r}
	}
	update := annotated(v1beta1.AnnotationInPlaceUpdateState, begun(time.Minute))
	sidecar := annotated(v1beta1.AnnotationSidecarSetInPlaceUpdateState, `{"log":`+begun(time.Minute)+`}`)
	change := func(requests []*v1beta1.ContainerRecreateRequest, change func(*v1beta1.ContainerRecreateRequest)) []*v1beta1.ContainerRecreateRequest {
		change(requests[0])
		return requests
	}
	unready := func(since time.Duration, stuck string) func(*corev1.Pod) {
		return annotated(v1beta1.AnnotationInPlaceUpdateState, `{"revision":"r","updateTimestamp":"`+now.Add(-time.Minute).UTC().Format(time.RFC3339)+
			`","lastContainerStatuses":{"app":{"imageID":"1"}},"refit":{"unready":{"since":"`+now.Add(-since).UTC().Format(time.RFC3339)+`","stuck":`+stuck+`}}}`)
	}
	for name, tt := range map[string]struct {
		pod      *corev1.Pod
		requests []*v1beta1.ContainerRecreateRequest
		underWay bool
	}{
		"nothing was begun":       {pod: podOf(false, since(4*time.Second), running(3*time.Second))},
		"updated":                 {pod: podOf(false, since(31*time.Second), running(30*time.Second), update), underWay: true},
		"updated by a SidecarSet": {pod: podOf(false, since(31*time.Second), running(30*time.Second), sidecar), underWay: true},
		"restarted":               {pod: podOf(false, since(31*time.Second), running(30*time.Second)), requests: request(time.Minute), underWay: true},
		"updated, and kubelet says later that it is not ready":      {pod: podOf(false, since(26*time.Second), running(30*time.Second), update), underWay: true},
		"not ready before its update":                               {pod: podOf(false, since(2*time.Minute), running(30*time.Second), update), underWay: true},
		"updated, ready, and not ready for another reason":          {pod: podOf(false, since(25*time.Second), running(30*time.Second), update)},
		"restarted, ready, and not ready for another reason":        {pod: podOf(false, since(25*time.Second), running(30*time.Second)), requests: request(time.Minute)},
		"updated and ready":                                         {pod: podOf(true, since(29*time.Second), running(30*time.Second), update)},
		"updated long ago, and restarted by itself":                 {pod: podOf(false, since(4*time.Second), running(3*time.Second), annotated(v1beta1.AnnotationInPlaceUpdateState, begun(10*time.Minute)))},
		"a request of long ago":                                     {pod: podOf(false, since(4*time.Second), running(3*time.Second)), requests: request(10 * time.Minute)},
		"updated, and it cannot become ready by itself":             {pod: podOf(false, since(31*time.Second), instance("cri://2"), waiting("CrashLoopBackOff"), update)},
		"updated, and it could not become ready before":             {pod: podOf(false, since(2*time.Minute), running(30*time.Second), unready(2*time.Minute, "true"))},
		"updated, and it could not become ready at an earlier time": {pod: podOf(false, since(31*time.Second), running(30*time.Second), unready(2*time.Minute, "true")), underWay: true},
		"updated, and it was not ready for a moment before":         {pod: podOf(false, since(2*time.Minute), running(30*time.Second), unready(2*time.Minute, "false")), underWay: true},
		"updated at a time far ahead":                               {pod: podOf(false, since(31*time.Second), running(30*time.Second), annotated(v1beta1.AnnotationInPlaceUpdateState, begun(-20*time.Minute)))},
		"updated, and another container cannot be started":          {pod: podOf(false, since(31*time.Second), running(30*time.Second), initWaits, update)},
		"updated, and the container has ended":                      {pod: podOf(false, since(31*time.Second), instance("cri://2"), exited(1, corev1.RestartPolicyAlways), annotated(v1beta1.AnnotationInPlaceUpdateState, strings.ReplaceAll(begun(time.Minute), `"app"`, `"gone"`)))},
		"another pod was restarted": {pod: podOf(false, since(31*time.Second), running(30*time.Second)), requests: change(request(time.Minute), func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.PodName = "web-1"
		})},
		"a request that has replaced no container": {pod: podOf(false, since(31*time.Second), running(30*time.Second)), requests: change(request(time.Minute), func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.Containers[0].StatusContext.ContainerID = "cri://2"
		})},
		"a request that does not say which instances": {pod: podOf(false, since(31*time.Second), running(30*time.Second)), requests: change(request(time.Minute), func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.Containers[0].StatusContext = nil
		})},
		"a request for a container of which kubelet says nothing": {pod: podOf(false, since(31*time.Second), running(30*time.Second)), requests: change(request(time.Minute), func(r *v1beta1.ContainerRecreateRequest) {
			r.Spec.Containers[0].Name = "gone"
		})},
		"restarted, and the container is being created": {pod: podOf(false, since(31*time.Second), instance("cri://2"), waiting("ContainerCreating")), requests: request(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := observe(t, tt.pod, tt.requests, 0, now)
			if got.UnderWay != tt.underWay {
				t.Errorf("under way %t, want %t; %+v", got.UnderWay, tt.underWay, got)
			}
		})
	}
}
