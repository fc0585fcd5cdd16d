package control

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/kit/recorder"
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
	names := a.rolloutNames()
	if len(names) != 1 {
		t.Fatalf("%v", names)
	}
	recorder.Want(t, a.events, "Normal RolloutCreated RestartRollout "+names[0])
	var stored v1alpha1.RestartSchedule
	if err := a.Get(t.Context(), nightly.NamespacedName, &stored); err != nil || !stored.Status.LastScheduleTime.Time.Equal(noon) || len(stored.Status.Active) != 1 {
		t.Errorf("%v, %+v", err, stored.Status)
	}
}

func (a *apiServer) refuseBy(cause error) {
	a.refuse = apierrors.NewForbidden(v1alpha1.GroupVersion().WithResource("restartrollouts").GroupResource(), "x", cause)
}

func TestScheduleSaysThatItsRolloutHasNotEnded(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, hourly())
	if _, err := a.schedule(); err != nil {
		t.Fatal(err)
	}
	names := a.rolloutNames()
	a.now = noon.Add(time.Hour)
	if _, err := a.schedule(); err != nil {
		t.Fatal(err)
	}
	recorder.Want(t, a.events, "Normal RolloutCreated ", "Warning RolloutDelayed RestartRollout "+strings.Join(names, " and "))
}

// What the API server has refused for good is reported as such, and what may pass is not.
func TestRefusalsOfARolloutAreTold(t *testing.T) {
	t.Parallel()
	group := v1alpha1.GroupVersion().WithResource("restartrollouts").GroupResource()
	for name, tt := range map[string]struct {
		answer error
		told   bool
		wrong  bool
	}{
		"bad request":    {apierrors.NewBadRequest("no such container"), true, true},
		"invalid":        {apierrors.NewInvalid(v1alpha1.GroupVersion().WithKind("RestartRollout").GroupKind(), "x", nil), true, true},
		"away":           {apierrors.NewInternalError(errors.New("webhook is away")), false, true},
		"already exists": {apierrors.NewAlreadyExists(group, "x"), false, false},
	} {
		a := newAPIServer(t, hourly())
		a.refuse = tt.answer
		_, err := a.schedule()
		if (err != nil) != tt.wrong {
			t.Errorf("%s: %v", name, err)
		}
		if tt.told {
			recorder.Want(t, a.events, "Warning RolloutRefused ")
		} else {
			recorder.Want(t, a.events)
		}
	}
}

// An error has the controller try again, with increasing delays.
func TestRefusedRolloutOfAScheduleIsTriedAgain(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, hourly())
	a.refuseBy(errors.New("quota"))
	for try := range 2 {
		if _, err := a.schedule(); !apierrors.IsForbidden(err) {
			t.Fatalf("try %d: %v", try+1, err)
		}
		if event := <-a.events.Events; !strings.Contains(event, "RolloutRefused") || !strings.Contains(event, "quota") {
			t.Error(event)
		}
	}
	var stored v1alpha1.RestartSchedule
	if err := a.Get(t.Context(), nightly.NamespacedName, &stored); err != nil || stored.Status.LastScheduleTime != nil || len(stored.Status.Active) > 0 {
		t.Errorf("%v: the status tells of a rollout that was refused: %+v", err, stored.Status)
	}
	a.refuse, a.now = nil, noon.Add(5*time.Minute)
	if result, err := a.schedule(); err != nil || result.RequeueAfter != 55*time.Minute {
		t.Fatalf("%v, %v", result, err)
	}
	if err := a.Get(t.Context(), nightly.NamespacedName, &stored); err != nil || !stored.Status.LastScheduleTime.Time.Equal(noon) || len(a.rolloutNames()) != 1 {
		t.Errorf("%v: %+v, %v", err, stored.Status, a.rolloutNames())
	}
}

func TestARefusedRolloutReplacesNoOther(t *testing.T) {
	t.Parallel()
	replacing := hourly()
	replacing.Spec.ConcurrencyPolicy = v1alpha1.ScheduleReplace
	a := newAPIServer(t, replacing)
	if _, err := a.schedule(); err != nil {
		t.Fatal(err)
	}
	first := client.ObjectKey{Namespace: "shop", Name: a.rolloutNames()[0]}
	replaced := func() bool {
		var running v1alpha1.RestartRollout
		if err := a.Get(t.Context(), first, &running); err != nil {
			t.Fatal(err)
		}
		return meta.IsStatusConditionTrue(running.Status.Conditions, v1alpha1.ConditionReplaced)
	}
	a.now = noon.Add(time.Hour)
	a.refuseBy(errors.New("quota"))
	if _, err := a.schedule(); !apierrors.IsForbidden(err) || replaced() {
		t.Errorf("%v: the rollout in progress is replaced: %v", err, replaced())
	}
	a.refuse = nil
	if _, err := a.schedule(); err != nil || !replaced() || len(a.rolloutNames()) != 2 {
		t.Errorf("%v: replaced: %v, rollouts %v", err, replaced(), a.rolloutNames())
	}
}

func TestRefusedRolloutIsNotTriedAfterItsDeadlineNorWhenTheNextIsDue(t *testing.T) {
	t.Parallel()
	late := hourly()
	late.Spec.StartingDeadlineSeconds = new(int64(60))
	a := newAPIServer(t, late)
	a.refuseBy(errors.New("quota"))
	if _, err := a.schedule(); err == nil {
		t.Fatal("it was not refused")
	}
	a.now = noon.Add(2 * time.Minute)
	if result, err := a.schedule(); err != nil || a.refused != 1 || result.RequeueAfter != 58*time.Minute {
		t.Errorf("after the deadline: %v, %v, tried %d times", result, err, a.refused)
	}
	a = newAPIServer(t, hourly())
	a.refuseBy(errors.New("quota"))
	if _, err := a.schedule(); err == nil {
		t.Fatal("it was not refused")
	}
	a.refuse, a.now = nil, noon.Add(time.Hour)
	if _, err := a.schedule(); err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.RestartSchedule
	if err := a.Get(t.Context(), nightly.NamespacedName, &stored); err != nil || !stored.Status.LastScheduleTime.Time.Equal(a.now) || len(a.rolloutNames()) != 1 {
		t.Errorf("when the next is due: %v: %+v, %v", err, stored.Status, a.rolloutNames())
	}
}

func TestNamespaceThatIsDeletedEndsTheTries(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, hourly())
	refused := apierrors.NewForbidden(v1alpha1.GroupVersion().WithResource("restartrollouts").GroupResource(), "x", errors.New("namespace is being terminated"))
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	a.refuse = refused
	if _, err := a.schedule(); err != nil || len(a.events.Events) > 0 {
		t.Errorf("%v, %d Events", err, len(a.events.Events))
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
	var stored v1alpha1.RestartSchedule
	if err := a.Get(t.Context(), nightly.NamespacedName, &stored); err != nil || !meta.IsStatusConditionFalse(stored.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%v: %+v", err, stored.Status)
	}
}
