package crr_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

func TestDrainingUntilTheFirstStopIsRecorded(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		change   func(*crr.Request)
		until    time.Time
		draining bool
	}{
		"the pod is not ready":   {func(*crr.Request) {}, begun.Add(10 * time.Second), true},
		"not made not ready yet": {func(r *crr.Request) { r.Status.Conditions = nil }, time.Time{}, true},
		"no drain was asked for": {func(r *crr.Request) { r.Spec.Strategy = nil }, time.Time{}, false},
		"not accepted":           {func(r *crr.Request) { r.Status.Phase = "" }, time.Time{}, false},
		"behind another request": {func(r *crr.Request) { r.Status.Phase = v1beta1.ContainerRecreateRequestPending }, time.Time{}, false},
		"ended":                  {func(r *crr.Request) { crr.Complete(&r.Status, crr.Outcome{}, 1, begun) }, time.Time{}, false},
		"the first container is ended": {func(r *crr.Request) {
			r.Status.ContainerRecreateStates[0].Phase = v1beta1.ContainerRecreateRequestRecreating
		}, time.Time{}, false},
		"the second is being stopped": {func(r *crr.Request) { r.Status.ContainerRecreateStates[1].ContainerID = "containerd://2" }, time.Time{}, false},
		"being stopped, under OpenKruise's CRD": {func(r *crr.Request) {
			r.Annotations = map[string]string{v1beta1.AnnotationInstances: `{"app":"containerd://1"}`}
		}, time.Time{}, false},
		"made not ready by OpenKruise up to 1.9": {func(r *crr.Request) {
			r.Status.Conditions = nil
			r.Annotations = map[string]string{v1beta1.AnnotationUnreadyAcquired: begun.Format(time.RFC3339)}
		}, begun.Add(10 * time.Second), true},
	} {
		r := &crr.Request{}
		r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}, {Name: "log"}}
		r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(10))}
		r.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
		r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{
			{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending}, {Name: "log", Phase: v1beta1.ContainerRecreateRequestPending},
		}
		v1beta1.SetPreRecreateGrace(&r.Status, begun, "")
		tt.change(r)
		if until, draining := crr.Draining(r); !until.Equal(tt.until) || draining != tt.draining || draining != (crr.DrainMessage(r) != "") {
			t.Errorf("%s: until %s, %v, %q", name, until, draining, crr.DrainMessage(r))
		}
	}
}
