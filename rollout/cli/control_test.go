package cli_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

// began returns RestartRollout web-x, which is in progress.
func (f *fixture) began(t *testing.T) *v1alpha1.RestartRollout {
	t.Helper()
	f.config.Wait = false
	if err := run(t, f, "deployment/web"); err != nil {
		t.Fatal(err)
	}
	return f.rollout(t, "web-x")
}

func (f *fixture) rollout(t *testing.T, name string) *v1alpha1.RestartRollout {
	t.Helper()
	var object v1alpha1.RestartRollout
	if err := f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &object); err != nil {
		t.Fatal(err)
	}
	return &object
}

func (f *fixture) printed(t *testing.T, err error, words string) {
	t.Helper()
	if err != nil || !strings.Contains(f.out.String(), words) {
		t.Errorf("%v; want %q in:\n%s", err, words, f.out.String())
	}
	f.out.Reset()
}

func TestARolloutIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.began(t)
	f.printed(t, rolloutcli.Pause(t.Context(), f.config, "web-x", true), "restartrollout/web-x paused")
	if !f.rollout(t, "web-x").Spec.Paused {
		t.Error("it is not paused")
	}
	f.printed(t, rolloutcli.Pause(t.Context(), f.config, "web-x", true), "is paused already")
	f.printed(t, rolloutcli.Status(t.Context(), f.config, "web-x", false), "kubectl refit rollout resume restartrollout/web-x --namespace=shop")
	f.printed(t, rolloutcli.Pause(t.Context(), f.config, "web-x", false), "restartrollout/web-x resumed")
	if f.rollout(t, "web-x").Spec.Paused {
		t.Error("it is paused")
	}
}

// Also a paused rollout begins no restart between its abort and its end, and also of a workload that has just been scaled down.
func TestAnAbortedRolloutBeginsNothingAndFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		paused   bool
		replicas int32
	}{{false, 2}, {true, 2}, {true, 1}} {
		paused := tt.paused
		f := newFixture(t)
		object := f.began(t)
		object.Spec.Paused, object.Spec.MaxUnavailable = paused, new(intstr.FromInt32(1))
		now := time.Now()
		object.CreationTimestamp = metav1.NewTime(now)
		pods := []string{"web-abc-1", "web-abc-2"}
		observed := rollout.Observation{Replicas: tt.replicas}
		for _, name := range pods {
			p := pod(name)
			p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
			observed.Pods = append(observed.Pods, p)
		}
		object.Status = rollout.Next(object, observed, now).Status
		if err := f.config.API.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		f.printed(t, rolloutcli.Abort(t.Context(), f.config, "web-x"), "restartrollout/web-x aborted")
		object = f.rollout(t, "web-x")
		object.CreationTimestamp = metav1.NewTime(now)
		for _, after := range []time.Duration{time.Second, 2 * time.Second, 10 * time.Second} {
			decision := rollout.Next(object, observed, now.Add(after))
			if len(decision.Start) > 0 {
				t.Fatalf("paused %v: %d restarts are begun after %s", paused, len(decision.Start), after)
			}
			object.Status = decision.Status
		}
		if object.Status.CompletionTime == nil {
			t.Errorf("paused %v: it has not ended: %+v", paused, object.Status)
		}
	}
}

func TestARolloutThatHasEndedIsNotChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finish = end(crr.Outcome{})
	f.began(t)
	for name, err := range map[string]error{
		"pause": rolloutcli.Pause(t.Context(), f.config, "web-x", true), "abort": rolloutcli.Abort(t.Context(), f.config, "web-x"),
	} {
		if console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.printed(t, rolloutcli.Status(t.Context(), f.config, "web-x", true), "2 of 2 pods")
}

func TestAScheduleIsTriggeredByHand(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finish = end(crr.Outcome{})
	nightly := &v1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}}
	nightly.Spec.Schedule, nightly.Spec.TimeZone = "0 3 * * *", "UTC"
	nightly.Spec.RolloutTemplate.Spec.TargetRef = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	nightly.Spec.RolloutTemplate.Spec.Containers = v1alpha1.RolloutContainers("app")
	nightly.Spec.RolloutTemplate.Metadata.Annotations = map[string]string{"example.com/ticket": "T-1", v1beta1.AnnotationReason: "leak"}
	if err := f.config.API.Create(t.Context(), nightly); err != nil {
		t.Fatal(err)
	}
	var list v1alpha1.RestartScheduleList
	if err := f.config.API.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Fatal(err)
	}
	name := list.Items[0].Name // the fixture adds a letter
	f.printed(t, rolloutcli.Trigger(t.Context(), f.config, name), "2 of 2 pods")
	made := f.rollout(t, name+"-x")
	if len(made.OwnerReferences) > 0 || !strings.Contains(made.Annotations[v1beta1.AnnotationReason], "triggered by hand") || made.Annotations["example.com/ticket"] != "T-1" || made.Spec.TTLSecondsAfterFinished == nil {
		t.Errorf("%+v", made)
	}
	var out strings.Builder
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	err := rolloutcli.Schedules(t.Context(), f.config, "wide", noon, &out)
	want := []string{"NAME", "SCHEDULE", "TIMEZONE", "TARGET", "STATE", "LAST", "NEXT", "AT", "CONTAINERS", name, "0 3 * * *", "UTC", "deployment/web", "Scheduled", "in 15h", "2026-11-23T03:00:00Z", "app"}
	for _, word := range want {
		if err != nil || !strings.Contains(out.String(), word) {
			t.Errorf("%v: no %q in:\n%s", err, word, out.String())
		}
	}
	f.printed(t, rolloutcli.Suspend(t.Context(), f.config, name, true), "suspended")
	out.Reset()
	if err := rolloutcli.Schedules(t.Context(), f.config, "", noon, &out); err != nil || !strings.Contains(out.String(), "Suspended") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
