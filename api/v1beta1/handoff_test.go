package v1beta1_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/v1beta1"
)

var since = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// Both forms say the same, whichever an object was stored with.
func TestHandOffIsReadFromAnnotationsOrStatus(t *testing.T) {
	t.Parallel()
	const snapshot, acquired = `[{"name":"app","ready":true,"restartCount":2,"containerID":"containerd://b"}]`, "2026-11-21T10:00:00Z"
	full := v1beta1.ContainerRecreateRequestStatus{
		ContainerStatusSnapshot: []v1beta1.ContainerStatusSnapshot{{Name: "app", Ready: true, RestartCount: 2, ContainerID: "containerd://b"}},
	}
	v1beta1.SetPreRecreateGrace(&full, since, v1beta1.MessagePreRecreateGrace)
	for name, tc := range map[string]struct {
		annotations  map[string]string
		status, want v1beta1.ContainerRecreateRequestStatus
	}{
		"nothing":                             {},
		"stored by OpenKruise 1.9":            {annotations: map[string]string{v1beta1.AnnotationSyncContainerStatuses: snapshot, v1beta1.AnnotationUnreadyAcquired: acquired}, want: full},
		"stored through a conversion webhook": {status: full, want: full},
		"both: the status takes precedence": {
			annotations: map[string]string{v1beta1.AnnotationSyncContainerStatuses: "[]", v1beta1.AnnotationUnreadyAcquired: "2020-01-01T00:00:00Z"},
			status:      full, want: full,
		},
		"unreadable annotations": {annotations: map[string]string{v1beta1.AnnotationSyncContainerStatuses: "{", v1beta1.AnnotationUnreadyAcquired: "soon"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &v1beta1.ContainerRecreateRequest{Status: *tc.status.DeepCopy()}
			r.Annotations = tc.annotations
			v1beta1.ReadHandOff(r)
			if diff := cmp.Diff(tc.want, r.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			gotSnapshot, gotAcquired, err := v1beta1.WriteHandOff(r.Status)
			if err != nil {
				t.Fatal(err)
			}
			if len(tc.want.Conditions) > 0 && (gotSnapshot != snapshot || gotAcquired != acquired) {
				t.Errorf("annotations %q, %q", gotSnapshot, gotAcquired)
			}
		})
	}
}

// FuzzReadHandOff: no annotation makes the reader panic, and what it reads can be written again.
func FuzzReadHandOff(f *testing.F) {
	f.Add(`[{"name":"app","ready":true}]`, "2026-11-21T10:00:00Z")
	f.Add("null", "")
	f.Fuzz(func(t *testing.T, snapshot, acquired string) {
		r := &v1beta1.ContainerRecreateRequest{}
		r.Annotations = map[string]string{v1beta1.AnnotationSyncContainerStatuses: snapshot, v1beta1.AnnotationUnreadyAcquired: acquired}
		v1beta1.ReadHandOff(r)
		if _, _, err := v1beta1.WriteHandOff(r.Status); err != nil {
			t.Error(err)
		}
		if len(r.Status.Conditions) > 0 && !meta.IsStatusConditionTrue(r.Status.Conditions, v1beta1.ConditionPreRecreateGrace) {
			t.Errorf("conditions %v", r.Status.Conditions)
		}
	})
}

func TestWhatOthersWroteIntoAHandOffIsBounded(t *testing.T) {
	t.Parallel()
	for name, annotations := range map[string]map[string]string{
		"a year":       {v1beta1.AnnotationUnreadyAcquired: "9999-12-31T23:59:59Z"},
		"an old year":  {v1beta1.AnnotationUnreadyAcquired: "0000-01-01T00:00:00Z"},
		"a long list":  {v1beta1.AnnotationSyncContainerStatuses: "[" + strings.Repeat("{},", 30_000) + "{}]"},
		"a deep value": {v1beta1.AnnotationSyncContainerStatuses: strings.Repeat("[", 60_000)},
	} {
		r := &v1beta1.ContainerRecreateRequest{}
		r.Annotations = annotations
		if v1beta1.ReadHandOff(r); len(r.Status.Conditions)+len(r.Status.ContainerStatusSnapshot) > 0 {
			t.Errorf("%s: is believed", name)
		}
	}
}

func TestReadinessHoldsAreBounded(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{"long": "[" + strings.Repeat(" ", 100_000) + "]", "a long number": "[" + strings.Repeat("1", 60_000) + "]"} {
		_, err := v1beta1.ReadReadinessHolds(&corev1.PodCondition{Type: "KruisePodReady", Message: message})
		if err == nil || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}
