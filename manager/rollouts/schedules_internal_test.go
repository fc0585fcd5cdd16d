package rollouts

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

var nightly = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "nightly"}}

func hourly() *v1alpha1.RestartSchedule {
	s := &v1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "s", CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute))}}
	s.Spec.Schedule = "0 * * * *"
	s.Spec.RolloutTemplate.Spec = object().Spec
	return s
}

func (a *apiServer) schedule() (ctrl.Result, error) {
	return (&scheduler{Config: a.reconciler.Config, client: a}).Reconcile(a.t.Context(), nightly)
}

func (a *apiServer) rolloutNames() []string {
	a.t.Helper()
	var list v1alpha1.RestartRolloutList
	if err := a.List(a.t.Context(), &list); err != nil {
		a.t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

func TestScheduleCreatesARolloutAndLooksAgainAtTheNextTime(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, hourly())
	for range 3 {
		if result, err := a.schedule(); err != nil || result.RequeueAfter != time.Hour {
			t.Fatalf("%v, %v", result, err)
		}
	}
	if names := a.rolloutNames(); len(names) != 1 {
		t.Errorf("%v", names)
	}
	var stored v1alpha1.RestartSchedule
	if err := a.Get(t.Context(), nightly.NamespacedName, &stored); err != nil || !stored.Status.LastScheduleTime.Time.Equal(noon) || len(stored.Status.Active) != 1 {
		t.Errorf("%v, %+v", err, stored.Status)
	}
}

func TestRefusedRolloutOfAScheduleIsAnEventAndNotRepeated(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, hourly())
	a.refuse = apierrors.NewForbidden(v1alpha1.GroupVersion().WithResource("restartrollouts").GroupResource(), "x", errors.New("quota"))
	for range 2 {
		if _, err := a.schedule(); err != nil {
			t.Fatal(err)
		}
	}
	if event := <-a.events.Events; a.refused != 1 || !strings.Contains(event, "RolloutRefused") || !strings.Contains(event, "quota") {
		t.Errorf("%d times: %s", a.refused, event)
	}
}

func TestScheduleThatCannotBeReadIsAnEvent(t *testing.T) {
	t.Parallel()
	wrong := hourly()
	wrong.Spec.TimeZone = "Europe/Atlantis"
	a := newAPIServer(t, wrong)
	if result, err := a.schedule(); err != nil || result.RequeueAfter != 0 {
		t.Fatalf("%v, %v", result, err)
	}
	if event := <-a.events.Events; !strings.Contains(event, "spec.timeZone") {
		t.Error(event)
	}
}
