package admission_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
)

// Fields that the API server fills in are missing in what a fake or an aggregated API server serves.
func TestAdmitOfAPodWithoutWhatIsOptional(t *testing.T) {
	t.Parallel()
	pod := crrtest.WebPod()
	pod.Spec.TerminationGracePeriodSeconds = nil
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
	got, err := admission.Admit(crrtest.UserRequest("app"), observed(pod))
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.Strategy.TerminationGracePeriodSeconds != nil || got.Spec.Containers[0].PreStop != nil {
		t.Errorf("%+v", got.Spec)
	}
}

// An init container may have a restartPolicy of its own, and runs once all the same.
func TestOnlyInitContainersThatAreAlwaysRestartedAreSidecars(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.ContainerRestartPolicy{"OnFailure", "Never"} {
		pod := crrtest.WebPod()
		pod.Spec.InitContainers[0].RestartPolicy = &policy
		_, err := admission.Admit(crrtest.UserRequest("setup"), observed(pod))
		refused(t, err, http.StatusBadRequest, "spec.containers[0].name", "init container")
	}
}

func TestARefusalSaysWhatAContainerWithoutAnInstanceWaitsFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state corev1.ContainerState
		waits string
	}{
		"nothing is known": {corev1.ContainerState{}, ""},
		"no reason":        {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, ""},
		"its image":        {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}, " (waiting: ImagePullBackOff)"},
	} {
		pod := crrtest.WebPod()
		pod.Status.ContainerStatuses[0].ContainerID, pod.Status.ContainerStatuses[0].State = "", tt.state
		_, err := admission.Admit(crrtest.UserRequest("app"), observed(pod))
		if err == nil || !strings.HasSuffix(err.Error(), "has not been initialized"+tt.waits) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Labels only count as set by a kruise-manager, and are replaced, if all of them are present. Otherwise they are
// refused as read-only.
func TestWhatIsReadOnlyIsRefusedUnlessAllLabelsOfAnAdmissionAreThere(t *testing.T) {
	t.Parallel()
	all := map[string]string{v1beta1.LabelPodUID: "uid-1", v1beta1.LabelNodeName: "node-1", v1beta1.LabelActive: "true"}
	for _, without := range []string{"", v1beta1.LabelPodUID, v1beta1.LabelNodeName, v1beta1.LabelActive} {
		request := crrtest.UserRequest("app")
		request.Labels = map[string]string{}
		for key, value := range all {
			if key != without {
				request.Labels[key] = value
			}
		}
		request.Spec.Containers[0].StatusContext = crrtest.StatusContext("other", 9)
		got, err := admission.Admit(request, observed(crrtest.WebPod()))
		switch {
		case without != "":
			refused(t, err, http.StatusBadRequest, "spec.containers[0].statusContext", "read-only")
		case err != nil || got.Spec.Containers[0].StatusContext.ContainerID != "containerd://app1":
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// Containers are filled in again only if nothing of what was filled in is sent: what was changed is seen.
func TestPartOfWhatWasFilledInIsAChange(t *testing.T) {
	t.Parallel()
	pod := crrtest.WebPod()
	preStop(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}})(pod)
	before, err := admission.Admit(crrtest.UserRequest("app"), observed(pod))
	if err != nil {
		t.Fatal(err)
	}
	before.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "admin", ContainerPort: 8080}}
	for name, change := range map[string]func(*v1beta1.ContainerRecreateRequestContainer){
		"only the instance": func(c *v1beta1.ContainerRecreateRequestContainer) { c.PreStop, c.Ports = nil, nil },
		"only the hook":     func(c *v1beta1.ContainerRecreateRequestContainer) { c.StatusContext, c.Ports = nil, nil },
		"only the ports":    func(c *v1beta1.ContainerRecreateRequestContainer) { c.StatusContext, c.PreStop = nil, nil },
		"another's instance": func(c *v1beta1.ContainerRecreateRequestContainer) {
			*c = v1beta1.ContainerRecreateRequestContainer{Name: "log"}
		},
	} {
		after := before.DeepCopy()
		change(&after.Spec.Containers[0])
		if _, err := admission.AdmitUpdate(before, after); err == nil {
			t.Errorf("%s: admitted", name)
		}
	}
}

// What a user has not chosen is filled in beside what has been chosen.
func TestStrategyIsCompleted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		given, want v1beta1.ContainerRecreateRequestStrategy
	}{
		"only the policy": {v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: "Ignore"}, v1beta1.ContainerRecreateRequestStrategy{
			FailurePolicy: "Ignore", TerminationGracePeriodSeconds: new(int64(7)),
		}},
		"all but the policy": {v1beta1.ContainerRecreateRequestStrategy{
			TerminationGracePeriodSeconds: new(int64(0)), UnreadyGracePeriodSeconds: new(int64(3)), MinStartedSeconds: 4, OrderedRecreate: true, ForceRecreate: true,
		}, v1beta1.ContainerRecreateRequestStrategy{
			FailurePolicy: "Fail", TerminationGracePeriodSeconds: new(int64(0)), UnreadyGracePeriodSeconds: new(int64(3)), MinStartedSeconds: 4, OrderedRecreate: true, ForceRecreate: true,
		}},
	} {
		request := crrtest.UserRequest("app")
		strategy(tt.given)(request)
		got, err := admission.Admit(request, observed(crrtest.WebPod()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&tt.want, got.Spec.Strategy); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A stored request is judged by all rules: the webhook may have been switched off.
func TestStoredRequestThatHasNotPassedAdmission(t *testing.T) {
	t.Parallel()
	unlabel := func(key string) func(*v1beta1.ContainerRecreateRequest) {
		return func(r *v1beta1.ContainerRecreateRequest) { delete(r.Labels, key) }
	}
	for field, change := range map[string]func(*v1beta1.ContainerRecreateRequest){
		"":             func(*v1beta1.ContainerRecreateRequest) {},
		"spec.podName": func(r *v1beta1.ContainerRecreateRequest) { r.Spec.PodName = "../web" },
		"metadata.labels[crr.apps.kruise.io/pod-uid]":   unlabel(v1beta1.LabelPodUID),
		"metadata.labels[crr.apps.kruise.io/node-name]": unlabel(v1beta1.LabelNodeName),
		"spec.containers[1].statusContext":              func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Containers[1].StatusContext = nil },
	} {
		request, err := admission.Admit(crrtest.UserRequest("app", "log"), observed(crrtest.WebPod()))
		if err != nil {
			t.Fatal(err)
		}
		change(request)
		if err = admission.CheckAdmitted(request); field != "" {
			refused(t, err, http.StatusBadRequest, field)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// Of two reasons the first is the one that cannot be mended.
func TestPodThatIsRefusedForTwoReasons(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*corev1.Pod){
		"web is being deleted": func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Status.Phase = &metav1.Time{Time: crrtest.AdmittedAt}, corev1.PodFailed
		},
		"inactive Pod": func(p *corev1.Pod) { p.Status.Phase, p.Spec.NodeName = corev1.PodFailed, "" },
		"is an init container": func(p *corev1.Pod) {
			p.Spec.Containers = nil
			p.Spec.InitContainers[0].Name = "app"
			policy("Never")(p)
		},
		"cannot be restarted":        func(p *corev1.Pod) { policy("Never")(p); p.Status.ContainerStatuses = nil },
		"to restart it nevertheless": func(p *corev1.Pod) { policy("Never")(p); p.Status.ContainerStatuses[0].ContainerID = "" },
	} {
		pod := crrtest.WebPod()
		change(pod)
		_, err := admission.Admit(crrtest.UserRequest("app"), observed(pod))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
