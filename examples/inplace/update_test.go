package main

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
)

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "1", ResourceVersion: "1"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
}

func TestAnImageIsPlannedFromOutsideOfTheRepository(t *testing.T) {
	t.Parallel()
	update, err := planned(pod(), "app", "app:2")
	if err != nil {
		t.Fatal(err)
	}
	if len(update.Stages) != 1 || update.Stages[0].Changes[0].Image != "app:2" {
		t.Error(update.Stages)
	}
	var refused *plan.RefusedError
	if _, err := planned(pod(), "app", "app:1"); !errors.As(err, &refused) || !refused.Has(plan.ReasonNoChange) {
		t.Error(err)
	}
	if _, err := planned(pod(), "web", "app:2"); err == nil {
		t.Error("a container that does not exist was planned")
	}
}

// The API server of this test stores the patch and ends the pod, so that nothing more is to be done.
func TestTheUpdateIsWrittenToThePod(t *testing.T) {
	t.Parallel()
	clients := fake.NewClientset(pod())
	clients.PrependReactor("patch", "pods", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		patch := action.(clientgotesting.PatchAction)
		if !strings.Contains(string(patch.GetPatch()), `"image":"app:2"`) {
			t.Errorf("patch of %q: %s", patch.GetSubresource(), patch.GetPatch())
		}
		stored := pod()
		stored.ResourceVersion, stored.Spec.Containers[0].Image, stored.Status.Phase = "2", "app:2", corev1.PodFailed
		return true, stored, nil
	})
	u := &updater{api: cluster{clients.CoreV1()}, out: t.Output()}
	err := u.setImage(t.Context(), "shop", "web-0", "app", "app:2")
	if err == nil || !strings.Contains(err.Error(), inplace.BlockedPodEnded) {
		t.Error(err)
	}
}
