package upgrade_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// The condition is shared by all SidecarSets of a pod, and with OpenKruise.
func TestConditionSaysWhichSidecarSetsCannotUpdateThePod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		has        string // message of the condition; empty: the pod has none
		upgradable bool
		want       string // status, reason and message; empty: nothing is written
	}{
		"first that can":         {"", true, ""},
		"first that cannot":      {"", false, `False UpdateImmutableField {"log":false}`},
		"cannot any more":        {`{"log":true,"mesh":true}`, false, `False UpdateImmutableField {"log":false,"mesh":true}`},
		"can again":              {`{"log":false,"mesh":true}`, true, `True AllSidecarsetUpgradable {"log":true,"mesh":true}`},
		"can, another cannot":    {`{"log":false,"mesh":false}`, true, `False UpdateImmutableField {"log":true,"mesh":false}`},
		"still cannot":           {`{"log":false}`, false, ""},
		"still can":              {`{"log":true,"mesh":false}`, true, ""},
		"not named, and can":     {`{"mesh":false}`, true, ""},
		"not named, and cannot":  {`{"mesh":true}`, false, `False UpdateImmutableField {"log":false,"mesh":true}`},
		"message that is no map": {`text`, false, `False UpdateImmutableField {"log":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Message: `{"log":true}`}}
			if tc.has != "" {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: v1beta1.ConditionSidecarSetUpgradable, Message: tc.has})
			}
			got := ""
			if c := upgrade.Condition(pod, "log", tc.upgradable); c != nil {
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
