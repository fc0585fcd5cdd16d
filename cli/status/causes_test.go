package status_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/internal/table"
)

func schedule(name string, change func(*v1alpha1.RestartSchedule)) *v1alpha1.RestartSchedule {
	s := &v1alpha1.RestartSchedule{ObjectMeta: object("shop", name, -600)}
	s.UID = types.UID("uid-of-" + name)
	s.Spec.Schedule, s.Spec.TimeZone = "0 3 * * *", "Europe/Paris"
	s.Spec.RolloutTemplate.Spec.TargetRef = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	if change != nil {
		change(s)
	}
	return s
}

func trigger() *v1alpha1.RestartTrigger {
	o := &v1alpha1.RestartTrigger{ObjectMeta: object("shop", "deployment-web", -600)}
	o.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	o.Status.Objects = []v1alpha1.ConfigObject{{Kind: "ConfigMap", Name: "settings"}, {Kind: "Secret", Name: "token"}}
	o.Status.LastRollout = "web-0a1b"
	o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWatching}}
	return o
}

// ownedBy makes a rollout that a schedule has created.
func ownedBy(owner *v1alpha1.RestartSchedule, name string, created int, condition string) *v1alpha1.RestartRollout {
	return rollout(func(r *v1alpha1.RestartRollout) {
		r.ObjectMeta = object("shop", name, created)
		r.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindRestartSchedule, Name: owner.Name, UID: owner.UID, Controller: new(true)}}
		if condition != "" {
			r.Status.CompletionTime = new(at(created + 1))
			r.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "R"}}
		}
	})
}

func TestSchedulesAndTriggersAreShown(t *testing.T) {
	t.Parallel()
	nightly := schedule("nightly", func(s *v1alpha1.RestartSchedule) { s.Status.LastScheduleTime = new(at(-600)) })
	objects := []client.Object{
		nightly, ownedBy(nightly, "nightly-1", -2040, v1alpha1.ConditionSucceeded), ownedBy(nightly, "nightly-2", -599, v1alpha1.ConditionFailed),
		schedule("off", func(s *v1alpha1.RestartSchedule) { s.Spec.Suspend = true }),
		schedule("wrong", func(s *v1alpha1.RestartSchedule) { s.Spec.TimeZone = "Europe/Atlantis" }),
		schedule("busy", func(s *v1alpha1.RestartSchedule) { s.Status.Active = []string{"busy-1"} }),
		trigger(),
	}
	for name, tc := range map[string]struct{ namespace, format, want string }{
		"table": {"shop", "", `NAME                            TARGET           STATE       NEXT RUN   LAST RUN   LAST ROLLOUT
restartschedule/busy            deployment/web   Active      in 14h     <none>     <none>
restartschedule/nightly         deployment/web   Scheduled   in 14h     10h ago    nightly-2 Failed
restartschedule/off             deployment/web   Suspended   <none>     <none>     <none>
restartschedule/wrong           deployment/web   Invalid     <none>     <none>     <none>
restarttrigger/deployment-web   deployment/web   Watching    <none>     <none>     web-0a1b
`},
		"names": {"shop", "name", "restartschedule.refit.dev/busy\nrestartschedule.refit.dev/nightly\nrestartschedule.refit.dev/off\nrestartschedule.refit.dev/wrong\nrestarttrigger.refit.dev/deployment-web\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			config := status.Config{API: cluster(t, objects...), Namespace: tc.namespace, Options: table.Options{Format: tc.format}, Since: time.Hour, Now: func() time.Time { return noon }}
			if err := status.Run(t.Context(), config, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var out bytes.Buffer
	wrong := trigger()
	wrong.Name, wrong.Status.Objects, wrong.Status.Conditions[0].Reason, wrong.Status.Conditions[0].Message = "deployment-wrong", nil, v1alpha1.ReasonInvalidAnnotation, "no container nope"
	config := status.Config{API: cluster(t, append(objects, request("shop", "now", -1), wrong)...), Options: table.Options{Format: "wide"}, Now: func() time.Time { return noon }}
	if err := status.Run(t.Context(), config, &out); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"crr/now", "\n\nNAMESPACE   NAME", "0 3 * * * Europe/Paris: next run at 2026-11-23T02:00:00Z", "spec.timeZone", "ConfigMap/settings, Secret/token", "web-0a1b           no container nope"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("no %q in:\n%s", words, out.String())
		}
	}
}

// The role view does not read RestartTriggers, which have digests of Secrets.
func TestStatusWithoutRightsToReadTriggers(t *testing.T) {
	t.Parallel()
	api := interceptor.NewClient(cluster(t, schedule("nightly", nil), trigger()), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, secret := list.(*v1alpha1.RestartTriggerList); secret {
				return apierrors.NewForbidden(v1alpha1.GroupVersion().WithResource("restarttriggers").GroupResource(), "", nil)
			}
			return c.List(ctx, list, options...)
		},
	})
	var out bytes.Buffer
	err := status.Run(t.Context(), status.Config{API: api, Namespace: "shop", Now: func() time.Time { return noon }}, &out)
	if err != nil || !strings.Contains(out.String(), "restartschedule/nightly") || strings.Contains(out.String(), "restarttrigger/") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
