package control

import (
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/reviewed"
)

// FuzzReviews makes RestartRollouts and RestartSchedules of their parts: each review of one is answered, within bounds.
func FuzzReviews(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, []byte{1})
		f.Add([]byte{1}, seed)
	}
	kinds := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(kinds); err != nil {
		f.Fatal(err)
	}
	decoder, cfg := admission.NewDecoder(kinds), Config{Logger: slog.New(slog.DiscardHandler), User: "refit-manager"}
	version := v1alpha1.GroupVersion().String()
	var rollout struct {
		Metadata metav1.ObjectMeta             `json:"metadata"`
		Spec     v1alpha1.RestartRolloutSpec   `json:"spec"`
		Status   v1alpha1.RestartRolloutStatus `json:"status"`
	}
	var schedule struct {
		Metadata metav1.ObjectMeta              `json:"metadata"`
		Spec     v1alpha1.RestartScheduleSpec   `json:"spec"`
		Status   v1alpha1.RestartScheduleStatus `json:"status"`
	}
	f.Fuzz(func(t *testing.T, sent, stored []byte) {
		for _, tc := range []struct {
			kind    string
			parts   any
			handler admission.Handler
		}{
			{v1alpha1.KindRestartRollout, rollout, rolloutAdmission(decoder, cfg)},
			{v1alpha1.KindRestartSchedule, schedule, scheduleAdmission(decoder, cfg)},
		} {
			object, old := hostile.Object(version, tc.kind, tc.parts, sent), hostile.Object(version, tc.kind, tc.parts, stored)
			reviewed.Hostile(t, tc.handler, "CREATE", tc.kind, object, []byte("null"))
			reviewed.Hostile(t, tc.handler, "UPDATE", tc.kind, object, old)
			reviewed.Hostile(t, tc.handler, "CREATE", tc.kind, sent, stored) // any text
		}
	})
}
