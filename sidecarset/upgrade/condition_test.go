package upgrade_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// The condition is shared by all SidecarSets of a pod, and with OpenKruise.
func TestConditionSaysWhichSidecarSetsCannotUpdateThePod(t *testing.T) {
	t.Parallel()
	cannot, outdated := upgrade.Verdict{State: rollout.NotUpgradable}, upgrade.Verdict{State: rollout.Outdated, InPlace: true}
	updated := upgrade.Verdict{State: rollout.Updated, InPlace: true}
	for name, tc := range map[string]struct {
		has     string // message of the condition; empty: the pod has none
		verdict upgrade.Verdict
		want    string // status, reason and message; empty: nothing is written
	}{
		"a hot upgrade given up":  {"", upgrade.Verdict{State: rollout.Aborted, InPlace: true}, ""},
		"can, although given up":  {`{"log":false}`, upgrade.Verdict{State: rollout.Aborted, InPlace: true}, `True AllSidecarsetUpgradable {"log":true}`},
		"can, before its update":  {"", outdated, ""},
		"as it was created":       {"", upgrade.Verdict{State: rollout.Updated}, ""},
		"after its update":        {"", updated, `True AllSidecarsetUpgradable {"log":true}`},
		"after another's update":  {`{"mesh":true}`, updated, `True AllSidecarsetUpgradable {"log":true,"mesh":true}`},
		"updated, another cannot": {`{"mesh":false}`, updated, `False UpdateImmutableField {"log":true,"mesh":false}`},
		"said so already":         {`{"log":true}`, updated, ""},
		"first that cannot":       {"", cannot, `False UpdateImmutableField {"log":false}`},
		"cannot any more":         {`{"log":true,"mesh":true}`, cannot, `False UpdateImmutableField {"log":false,"mesh":true}`},
		"can again":               {`{"log":false,"mesh":true}`, outdated, `True AllSidecarsetUpgradable {"log":true,"mesh":true}`},
		"can, another cannot":     {`{"log":false,"mesh":false}`, outdated, `False UpdateImmutableField {"log":true,"mesh":false}`},
		"still cannot":            {`{"log":false}`, cannot, ""},
		"still can":               {`{"log":true,"mesh":false}`, outdated, ""},
		"not named, and can":      {`{"mesh":false}`, outdated, ""},
		"not named, and cannot":   {`{"mesh":true}`, cannot, `False UpdateImmutableField {"log":false,"mesh":true}`},
		"message that is no map":  {`text`, cannot, `False UpdateImmutableField {"log":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Message: `{"log":true}`}}
			if tc.has != "" {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: v1beta1.ConditionSidecarSetUpgradable, Message: tc.has})
			}
			got := ""
			if c := upgrade.Condition(pod, "log", &tc.verdict, &rollout.Strategy{}); c != nil {
				got = string(c.Status) + " " + c.Reason + " " + c.Message
				if c.Type != v1beta1.ConditionSidecarSetUpgradable {
					t.Errorf("type %s", c.Type)
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// It is about what the user wants to be updated; a condition that is no longer true is corrected in any case.
func TestConditionIsFalseOnlyWhereThePodIsToBeUpdated(t *testing.T) {
	t.Parallel()
	web := rollout.Strategy{Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	for name, tc := range map[string]struct {
		app      string
		strategy rollout.Strategy
		state    rollout.State
		has      string
		want     bool
	}{
		"selected":                         {"web", web, rollout.NotUpgradable, "", true},
		"not selected":                     {"db", web, rollout.NotUpgradable, "", false},
		"not selected, and said to be":     {"db", web, rollout.NotUpgradable, `{"log":true}`, false},
		"paused":                           {"web", rollout.Strategy{Paused: true}, rollout.NotUpgradable, "", false},
		"can be again, while it is paused": {"web", rollout.Strategy{Paused: true}, rollout.Outdated, `{"log":false}`, true},
	} {
		pod := &corev1.Pod{}
		pod.Labels = map[string]string{"app": tc.app}
		pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarSetUpgradable, Message: tc.has}}
		if got := upgrade.Condition(pod, "log", &upgrade.Verdict{State: tc.state}, &tc.strategy); (got != nil) != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
