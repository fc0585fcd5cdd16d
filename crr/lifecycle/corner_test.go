package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/crrtest"
	"github.com/refit-project/refit/crr/lifecycle"
)

// A daemon that has been away for long may be back by the time that the request reaches it.
func TestARequestThatIsCreatedWithoutADaemonWaitsAsLongAsAnyOther(t *testing.T) {
	t.Parallel()
	away := lifecycle.Observation{Pod: crrtest.WebPod(), NoDaemonSince: crrtest.AdmittedAt.Add(-time.Hour)}
	if got := next(t, stored(t), away, crrtest.AdmittedAt.Add(time.Second)); len(writes(got)) > 0 || !got.Again.Equal(at(time.Minute)) {
		t.Errorf("%+v", got)
	}
}

// Another program may have admitted it, and what ends a request may have written no time.
func TestARequestWithoutWhatAdmissionFillsInIsHandledAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		request []edit
		busy    bool
		want    string
	}{
		"no strategy":           {request: []edit{taken, func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Strategy = nil }}},
		"no time of completion": {request: []edit{taken, succeeded, func(r *v1beta1.ContainerRecreateRequest) { r.Status.CompletionTime = nil }}, busy: true, want: "meta"},
		"no time, and to be deleted": {
			request: []edit{taken, succeeded, inactive, ttl(0), func(r *v1beta1.ContainerRecreateRequest) { r.Status.CompletionTime = nil }},
		},
		"an annotation that nobody can read": {request: []edit{takenByKruise, annotate(snapshotKey, "{")}},
	} {
		got := next(t, stored(t, tt.request...), lifecycle.Observation{Pod: crrtest.WebPod(), NodeBusy: tt.busy}, crrtest.AdmittedAt.Add(2*time.Second))
		if did := strings.Join(writes(got), " "); did != tt.want {
			t.Errorf("%s: writes %q, want %q (%s)", name, did, tt.want, got.Why)
		}
	}
}
