package rollout_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// A tenant labelled a pod of his own after its creation, and nobody's pods were evicted for an hour.
func TestAPodThatMissedItsInjectionStopsEvictionsInItsNamespaceOnly(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := rollout.NewFleet(nil)
	for _, namespace := range []string{"shop", "tenant"} {
		f.Set(rollout.Pod{Key: types.NamespacedName{Namespace: namespace, Name: "web"}, UID: types.UID(namespace), State: rollout.NotUpgradable, Ready: true, ReadySince: now.Add(-time.Hour)})
	}
	strategy, err := rollout.NewStrategy(&v1beta1.SidecarSetUpdateStrategy{RecreatePolicy: v1beta1.RecreateEvict, MaxUnavailable: new(intstr.FromInt32(2))}, false)
	if err != nil {
		t.Fatal(err)
	}
	until := now.Add(time.Hour)
	selection := f.Select(&strategy, now, &rollout.Beside{Doubtful: map[string]time.Time{"tenant": until}})
	if len(selection.Pods) != 1 || selection.Pods[0].Namespace != "shop" || !selection.Again.Equal(until) {
		t.Errorf("selected %v, again at %s", selection.Pods, selection.Again)
	}
	f.Delete(types.NamespacedName{Namespace: "shop", Name: "web"})
	selection = f.Select(&strategy, now, &rollout.Beside{Doubtful: map[string]time.Time{"tenant": until}})
	if len(selection.Pods) > 0 || selection.Held != "" || !selection.Again.Equal(until) {
		t.Errorf("only the doubtful one is left: %+v", selection)
	}
	f.Set(rollout.Pod{Key: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "shop", State: rollout.NotUpgradable, Ready: true, RetryAt: until.Add(time.Minute)})
	selection = f.Select(&strategy, now, &rollout.Beside{Doubtful: map[string]time.Time{"tenant": until}})
	if len(selection.Pods) > 0 || selection.Held != rollout.HoldRetry || !selection.Again.Equal(until) {
		t.Errorf("the other is tried again later: %+v", selection)
	}
}
