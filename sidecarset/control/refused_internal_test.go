package control

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// What the plan of the update refuses, and no comparison with the SidecarSet shows, is not forgotten with the next event of
// the pod: it would be selected again and again, and the status would not name it.
func TestAPodWhoseUpdateWasRefusedIsNotSelectedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	pod := w.pod("web-0")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	w.check(w.Update(t.Context(), pod))
	w.look()
	w.change(image("log:2"))
	w.rounds(8)
	if got := w.images(); got["log:2"] != 2 || got["log:1"] != 1 {
		t.Fatalf("%v", got)
	}
	pod = w.pod("web-0")
	pod.Labels["seen"] = "again"
	w.check(w.Update(t.Context(), pod))
	if _, err := w.r.observe(t.Context(), w.r.find("logs"), pod); err != nil {
		t.Fatal(err)
	}
	if known, _ := w.r.find("logs").fleet.Get(client.ObjectKeyFromObject(pod)); known.State != rollout.NotUpgradable {
		t.Errorf("the pod is %v after its next event", known.State)
	}
	degraded := meta.FindStatusCondition(w.set().Status.Conditions, v1beta1.ConditionDegraded)
	if degraded == nil || !strings.Contains(degraded.Message, "web-0") || !strings.Contains(degraded.Message, "restartPolicy Never") {
		t.Errorf("%+v", degraded)
	}
}
