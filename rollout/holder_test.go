package rollout_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// requestOf is a request for a pod by somebody else: by a rollout, if that has a name.
func requestOf(name, pod, rollout string) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{}}}
	r.Spec.PodName = pod
	if rollout != "" {
		r.Labels[v1alpha1.LabelRestartRollout] = "uid-of-" + rollout
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "refit.dev/v1alpha1", Kind: v1alpha1.KindRestartRollout, Name: rollout, UID: "other", Controller: new(true)}}
	}
	return r
}

func TestTheMessageNamesWhoMakesThePodsUnavailable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		act  func(*fixture)
		want string
	}{
		"another rollout": {func(f *fixture) {
			f.observed.Requests = append(f.observed.Requests, requestOf("nightly-1a2b", "web-0", "nightly"))
		}, "; unavailable: web-0 (RestartRollout nightly)"},
		"a request of a user": {func(f *fixture) {
			f.observed.Requests = append(f.observed.Requests, requestOf("web-0-x", "web-0", ""))
		}, "; unavailable: web-0 (ContainerRecreateRequest web-0-x)"},
		"a request that has ended": {func(f *fixture) {
			ended := requestOf("web-0-x", "web-0", "")
			crr.Complete(&ended.Status, crr.Outcome{}, 1, start)
			f.observed.Requests = append(f.observed.Requests, ended)
			setReady(f.pod("web-0"), false, start)
		}, "; unavailable: web-0"},
		"a SidecarSet": {func(f *fixture) {
			f.pod("web-0").Annotations = map[string]string{v1beta1.AnnotationSidecarSetInPlaceUpdateState: `{"mesh":{"revision":"2","updateTimestamp":"` +
				start.Format("2006-01-02T15:04:05Z") + `","lastContainerStatuses":{"log":{"imageID":"old"}}}}`}
			f.pod("web-0").Status.ContainerStatuses[1].ImageID = "old"
		}, "; unavailable: web-0 (SidecarSet mesh)"},
		"the rollout itself": {func(f *fixture) { f.look() }, "; unavailable: web-2"},
		"nobody": {func(f *fixture) {
			f.pod("web-1").Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(start)}}
		}, "; unavailable: web-1"},
	} {
		f := newFixture(3)
		tt.act(f)
		f.look()
		if name == "nobody" || name == "a request that has ended" { // such a pod is restarted first
			f.look()
		}
		if got := f.message(v1alpha1.ConditionProgressing); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s: %q, want %q at the end", name, got, tt.want)
		}
	}
}

func TestTheMessageNamesTheRolloutThatRestartsThePod(t *testing.T) {
	t.Parallel()
	f := newFixture(1, maxUnavailable("2"))
	f.observed.Requests = append(f.observed.Requests, requestOf("nightly-1a2b", "web-0", "nightly"))
	f.look()
	if want := "waiting for other RestartRollouts to end their restarts of 1 pod: nightly"; f.message(v1alpha1.ConditionProgressing) != want {
		t.Errorf("%q, want %q", f.message(v1alpha1.ConditionProgressing), want)
	}
}
